//! Spans of programs: `docs/reference/spans.md` explains how their events fit together. Users choose the
//! names of spans, so the names here are suffixes of the names of classes: an event of class
//! `shop:order_begin` is the beginning of a span `shop:order`.

use crate::Field;
use crate::declare::{names, readers};
use tracewing_units::SpanNumber;

/// Passes the declaration of the events of spans to a macro.
#[macro_export]
macro_rules! span_events {
    ($($then:ident)::+) => { $($then)::+ ! {
        provider "span" named "_";
        enumerations {}
        events {
            /// A span begins, and the thread is in it. Fields of its own follow.
            Begin "begin" {
                /// The span.
                span: SpanNumber [hex],
                /// The span that it belongs to; 0 for none.
                parent: SpanNumber [hex],
            }

            /// The thread leaves a span, which ends.
            End "end" {
                /// The span.
                span: SpanNumber [hex],
            }

            /// A span begins; no thread is in it yet. Fields of its own follow.
            New "new" {
                /// The span.
                span: SpanNumber [hex],
                /// The span that it belongs to; 0 for none.
                parent: SpanNumber [hex],
            }

            /// The thread enters a span.
            Enter "enter" {
                /// The span.
                span: SpanNumber [hex],
            }

            /// The thread leaves a span.
            Exit "exit" {
                /// The span.
                span: SpanNumber [hex],
            }

            /// A span ends.
            Close "close" {
                /// The span.
                span: SpanNumber [hex],
            }

            /// The fields that follow have new values.
            Record "record" {
                /// The span.
                span: SpanNumber [hex],
            }

            /// Another span led to this one.
            Follows "follows" {
                /// The span.
                span: SpanNumber [hex],
                /// The span that led to it.
                follows: SpanNumber [hex],
            }
        }
    } };
}

span_events!(readers);

macro_rules! suffixes {
    ($($declaration:tt)*) => { names! { span_suffix $($declaration)* } };
}

span_events!(suffixes);

/// The fields that precede those of an event of the crates `tracing` and `log`: the innermost span.
pub const WITHIN: &[Field] = Enter::FIELDS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_as_a_literal_is_the_declared_one() {
        let literals = [
            (Class::Begin, concat!("a:b", span_suffix!(Begin))),
            (Class::End, concat!("a:b", span_suffix!(End))),
            (Class::Close, concat!("a:b", span_suffix!(Close))),
        ];
        for (class, literal) in literals {
            assert_eq!(literal.strip_prefix("a:b"), Some(class.name()));
        }
        assert_eq!(Begin::parent.name, "parent");
    }
}
