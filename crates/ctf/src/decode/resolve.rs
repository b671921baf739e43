//! Finds the fields that a length, a tag or a selector refers to (specification 1.8.3, section 7.3.2;
//! CTF2-SPEC-2.0, section 6.4.2).
//!
//! A CTF 2 path does not name the options of variants that it passes, so it leads to one field in each of
//! them.

use super::compiler::Compiler;
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

/// The scope and the nodes of the field at `location`, as seen from within `stack` in `scope`; no nodes if
/// there is none.
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
            let mut found =
                here.map(|nodes| (scope, nodes)).chain(before).filter(|(_, nodes)| !nodes.is_empty());
            // What is not an integer hides none further out: a typedef may be used where another field has
            // its length's name.
            let Some((first, nodes)) = found.next() else { return none };
            if is_integer(compiler, first, &nodes) {
                return (first, nodes);
            }
            found.find(|(scope, nodes)| is_integer(compiler, *scope, nodes)).unwrap_or((first, nodes))
        }
    }
}

fn is_integer(compiler: &Compiler, scope: Scope, nodes: &[usize]) -> bool {
    let program = &compiler.programs[scope as usize];
    let integer =
        |node: &usize| program.as_ref().is_some_and(|program| program.nodes[*node].kind.integer().is_some());
    nodes.iter().all(integer)
}

fn is_structure(frame: &Frame<'_>) -> bool {
    matches!(frame, Frame::Structure { .. })
}

/// The nodes that `path` names in the structure at the bottom of `stack`: after a completed member, or
/// further along the stack, after the one that is being compiled.
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

/// The nodes that `path` names below `node`.
fn descend(compiler: &Compiler, scope: Scope, node: usize, path: &[String]) -> Vec<usize> {
    let Some(program) = &compiler.programs[scope as usize] else { return Vec::new() };
    match compiler.named_options {
        true => with_options(&program.nodes, node, path),
        false => without_options(&program.nodes, node, path).unwrap_or_default(),
    }
}

/// In CTF 1.8 a path names the options of variants, and goes through arrays without naming them: it means the
/// last element.
fn with_options(nodes: &[Node], mut node: usize, path: &[String]) -> Vec<usize> {
    for name in path {
        while let Kind::Array { element, .. } = &nodes[node].kind {
            node = *element as usize;
        }
        let found =
            children(&nodes[node].kind).find(|child| nodes[*child].name.as_deref() == Some(name.as_str()));
        match found {
            Some(child) => node = child,
            None => return Vec::new(),
        }
    }
    vec![node]
}

/// In CTF 2 a path must lead to a field in each option of a variant that it passes, and may not lead into an
/// array or optional, except those that are being decoded; `None` if it is invalid.
fn without_options(nodes: &[Node], node: usize, path: &[String]) -> Option<Vec<usize>> {
    match (&nodes[node].kind, path.split_first()) {
        (Kind::Array { .. } | Kind::Optional(_), _) => None,
        (kind @ Kind::Variant(_), _) => {
            let options = children(kind).map(|option| without_options(nodes, option, path));
            options.collect::<Option<Vec<_>>>().map(|found| found.concat())
        }
        (kind @ Kind::Structure { .. }, Some((name, tail))) => {
            let member = children(kind).find(|child| nodes[*child].name.as_deref() == Some(name.as_str()))?;
            without_options(nodes, member, tail)
        }
        (_, None) => Some(vec![node]),
        (_, Some(_)) => None,
    }
}

/// The members of a structure, the options of a variant.
fn children(kind: &Kind) -> std::ops::Range<usize> {
    let (first, count) = match kind {
        Kind::Structure { first, count, .. } => (*first, *count),
        Kind::Variant(variant) => (variant.first, variant.count),
        _ => (0, 0),
    };
    first as usize..(first + count) as usize
}
