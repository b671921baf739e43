//! Finds the field that a length or a tag refers to (specification 1.8.3, section 7.3.2).

use super::compile::Compiler;
use super::program::Kind;
use crate::model::{FieldLocation, Origin, Scope, StructureClass};

/// A compound around the field being compiled.
pub(super) enum Frame<'c> {
    /// A structure: its class, the node of its first member, and the index of the member on the way.
    Structure { class: &'c StructureClass, first: usize, index: usize },
    /// An array or a variant: nothing in it precedes the field.
    Other,
}

const SCOPES: [Scope; 6] = [
    Scope::PacketHeader,
    Scope::PacketContext,
    Scope::EventHeader,
    Scope::CommonContext,
    Scope::SpecificContext,
    Scope::Payload,
];

/// The scope and the node of the field at `location`, as seen from within `stack` in `scope`.
pub(super) fn find(
    compiler: &Compiler,
    scope: Scope,
    location: &FieldLocation,
    stack: &[Frame<'_>],
) -> Option<(Scope, usize)> {
    let (head, tail) = location.path.split_first()?;
    match location.origin {
        Origin::Scope(origin) if origin < scope => {
            Some((origin, descend(compiler, origin, 0, &location.path)?))
        }
        Origin::Scope(origin) if origin == scope => {
            Some((scope, descend(compiler, scope, earlier(stack.first()?, head)?, tail)?))
        }
        Origin::Scope(_) => None,
        Origin::Relative { up } => {
            let mut around = stack.iter().rev().filter(|frame| matches!(frame, Frame::Structure { .. }));
            Some((scope, descend(compiler, scope, earlier(around.nth(up as usize)?, head)?, tail)?))
        }
        Origin::Search => {
            let here =
                stack.iter().rev().find_map(|frame| descend(compiler, scope, earlier(frame, head)?, tail));
            if let Some(node) = here {
                return Some((scope, node));
            }
            let before = SCOPES.into_iter().rev().filter(|earlier| *earlier < scope);
            before
                .into_iter()
                .find_map(|earlier| Some((earlier, descend(compiler, earlier, 0, &location.path)?)))
        }
    }
}

/// The node of the member called `name`, if it stands before the one on the way.
fn earlier(frame: &Frame<'_>, name: &str) -> Option<usize> {
    match frame {
        Frame::Structure { class, first, index } => {
            class.members[..*index].iter().position(|member| member.name == name).map(|member| first + member)
        }
        Frame::Other => None,
    }
}

/// The node that `path` names below `node`. A path goes through arrays without naming them; it means the last element.
fn descend(compiler: &Compiler, scope: Scope, mut node: usize, path: &[String]) -> Option<usize> {
    let nodes = &compiler.programs[scope as usize].as_ref()?.nodes;
    for name in path {
        while let Kind::Array { element, .. } = nodes[node].kind {
            node = element as usize;
        }
        let (first, count) = match &nodes[node].kind {
            Kind::Structure { first, count, .. } => (*first as usize, *count as usize),
            Kind::Variant(variant) => (variant.first as usize, variant.count as usize),
            _ => return None,
        };
        node = (first..first + count).find(|child| nodes[*child].name.as_deref() == Some(name))?;
    }
    Some(node)
}
