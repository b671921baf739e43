//! Finds the fields that a length, a tag or a selector refers to (specification 1.8.3, section 7.3.2; CTF2-SPEC-2.0,
//! section 6.4.2).
//!
//! In CTF 2 a path does not name the options of variants on its way, so that it may lead to one field in each of them.

use super::compile::Compiler;
use super::program::{Kind, Node};
use crate::model::{FieldLocation, Origin, Scope, StructureClass};

/// A compound around the field being compiled.
pub(super) enum Frame<'c> {
    /// A structure: its class, the node of its first member, and the index of the member on the way.
    Structure { class: &'c StructureClass, first: usize, index: usize },
    /// The option of a variant.
    Option(&'c str),
    /// An array or an optional: paths do not name what is in it.
    Through,
}

const SCOPES: [Scope; 6] = [
    Scope::PacketHeader,
    Scope::PacketContext,
    Scope::EventHeader,
    Scope::CommonContext,
    Scope::SpecificContext,
    Scope::Payload,
];

/// The scope and the nodes of the field at `location`, as seen from within `stack` in `scope`; no nodes if there is none.
pub(super) fn find(
    compiler: &Compiler,
    scope: Scope,
    location: &FieldLocation,
    stack: &[Frame<'_>],
) -> (Scope, Vec<usize>) {
    let path = location.path.as_slice();
    let none = (scope, Vec::new());
    match location.origin {
        Origin::Scope(origin) if origin < scope => (origin, descend(compiler, origin, 0, path)),
        Origin::Scope(origin) if origin == scope => (scope, along(compiler, scope, stack, path)),
        Origin::Scope(_) => none,
        Origin::Relative { up } => {
            let structures = stack.iter().enumerate().rev().filter(|(_, frame)| is_structure(frame));
            match structures.map(|(depth, _)| depth).nth(up as usize) {
                Some(depth) => (scope, along(compiler, scope, &stack[depth..], path)),
                None => none,
            }
        }
        Origin::Search => {
            let around = (0..stack.len()).rev().filter(|&depth| is_structure(&stack[depth]));
            let here = around.map(|depth| along(compiler, scope, &stack[depth..], path));
            let before = SCOPES.into_iter().rev().filter(|earlier| *earlier < scope);
            let before = before.map(|earlier| (earlier, descend(compiler, earlier, 0, path)));
            here.map(|nodes| (scope, nodes))
                .chain(before)
                .find(|(_, nodes)| !nodes.is_empty())
                .unwrap_or(none)
        }
    }
}

fn is_structure(frame: &Frame<'_>) -> bool {
    matches!(frame, Frame::Structure { .. })
}

/// The nodes that `path` names in the structure that `stack` begins with: behind a member that is complete, or further
/// down the stack, behind the one that is being compiled.
fn along(compiler: &Compiler, scope: Scope, mut stack: &[Frame<'_>], mut path: &[String]) -> Vec<usize> {
    loop {
        let (Some((Frame::Structure { class, first, index }, rest)), Some((name, tail))) =
            (stack.split_first(), path.split_first())
        else {
            return Vec::new();
        };
        match class.members[..=*index].iter().position(|member| member.name == *name) {
            Some(member) if member < *index => return descend(compiler, scope, first + member, tail),
            Some(_) => (stack, path) = (rest, tail),
            None => return Vec::new(),
        }
        while let Some((frame, rest)) = stack.split_first().filter(|(frame, _)| !is_structure(frame)) {
            if let (Frame::Option(option), true) = (frame, compiler.named_options) {
                match path.split_first() {
                    Some((name, tail)) if name == option => path = tail,
                    _ => return Vec::new(),
                }
            }
            stack = rest;
        }
    }
}

/// The nodes that `path` names below `node`. A path goes through arrays without naming them; in CTF 1.8 it means the last
/// element, in CTF 2 it may only go through an array that is being decoded.
fn descend(compiler: &Compiler, scope: Scope, node: usize, path: &[String]) -> Vec<usize> {
    let Some(program) = &compiler.programs[scope as usize] else { return Vec::new() };
    let nodes = program.nodes.as_slice();
    let mut at = vec![node];
    for name in path {
        let named = |node: &usize| nodes[*node].name.as_deref() == Some(name.as_str());
        at = at
            .into_iter()
            .flat_map(|node| inside(nodes, node, compiler.named_options))
            .flat_map(|node| match &nodes[node].kind {
                Kind::Structure { first, count, .. } => *first as usize..(first + count) as usize,
                Kind::Variant(variant) => variant.first as usize..(variant.first + variant.count) as usize,
                _ => 0..0,
            })
            .filter(named)
            .collect();
    }
    match compiler.named_options {
        true => at,
        false => at.into_iter().flat_map(|node| inside(nodes, node, false)).collect(),
    }
}

/// What a path means by `node`: what is in arrays and optionals, and, where their options are not named, in variants.
fn inside(nodes: &[Node], node: usize, named_options: bool) -> Vec<usize> {
    match &nodes[node].kind {
        Kind::Array { .. } if !named_options => Vec::new(),
        Kind::Array { element, .. } => inside(nodes, *element as usize, named_options),
        Kind::Optional(optional) => inside(nodes, optional.field as usize, named_options),
        Kind::Variant(variant) if !named_options => {
            let options = variant.first as usize..(variant.first + variant.count) as usize;
            options.flat_map(|option| inside(nodes, option, named_options)).collect()
        }
        _ => vec![node],
    }
}
