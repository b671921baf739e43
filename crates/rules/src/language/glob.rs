//! Shell patterns, stored as written. [`pattern`](crate::pattern) defines their meaning.

use std::fmt;

/// A pattern that a whole name or text must match: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a character
/// that stands for itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Glob(Box<str>);

impl Glob {
    /// Any text is a pattern: a `[` that is never closed, or a `\` at the end, stands for itself.
    pub fn new(pattern: impl Into<Box<str>>) -> Self {
        Self(pattern.into())
    }

    /// Whether all of `text` matches.
    pub fn matches(&self, text: &str) -> bool {
        self.matches_bytes(text.as_bytes())
    }

    /// As [`matches`](Self::matches), for text of unknown origin; a byte that is not UTF-8 is treated as one
    /// character.
    pub fn matches_bytes(&self, text: &[u8]) -> bool {
        crate::pattern::matches(self.0.bytes(), text.iter().copied())
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;
    use proptest::prelude::*;

    #[test]
    fn matches_as_a_shell_does() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("**", "abc", true),
            ("?", "", false),
            ("sched_*", "sched_switch", true),
            ("sched_*", "a_sched_switch", false),
            ("*:sched_sw?tch", "sched:sched_switch", true),
            ("shop:*", "workshop:enqueued", false),
            ("*:enq*ed", "shop:enqueued", true),
            ("*:in", "shop:in:in", true),
            ("*a*b*c", "xxaxxbxxbxc", true),
            ("*a*b*c", "xxaxxbxxbxcd", false),
            ("*a*b", "xaxxbxb", true),
            ("*a*b", "xaxxbxbc", false),
            ("s?e", "sie", true),
            ("s?e", "se", false),
            ("e[0-9]", "e7", true),
            ("e[!0-9]", "e7", false),
            ("sys_[er]x*", "sys_exit", true),
            ("sys_[a-d]*", "sys_exit", false),
            ("sys_[!a-d]*", "sys_exit", true),
            ("[^a-c]x", "dx", true),
            ("[]a]", "]", true),
            ("a[]]b", "a]b", true),
            ("[a-]", "-", true),
            ("[ab", "[ab", true),
            ("a[a-", "a[a-", true),
            ("a[b*", "a[bc", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("a\\", "a\\", true),
            ("\\[a]", "[a]", true),
            ("grüße*", "grüßen", true),
            ("gr?n", "grün", true),
            ("gr??n", "grün", false),
            ("*[!ü]", "ü", false),
            ("[ä-ü]", "ö", true),
        ] {
            assert_eq!(Glob::new(pattern).matches(text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_stray_byte_is_one_character() {
        assert!(Glob::new("a?b").matches_bytes(b"a\xffb"));
        assert!(Glob::new("?").matches_bytes(b"\xc3"));
        assert!(!Glob::new("?").matches_bytes(b"\xc3\x28"));
        assert!(Glob::new("??").matches_bytes(b"\xc0\xaf"), "an overlong form is no character");
    }

    /// The textbook definition, by recursion.
    fn plainly(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['*', rest @ ..] => (0..=text.len()).any(|at| plainly(rest, &text[at..])),
            ['?', rest @ ..] => !text.is_empty() && plainly(rest, &text[1..]),
            [first, rest @ ..] => text.first() == Some(first) && plainly(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn stars_are_tried_as_far_as_needed(pattern in "[abé*?]{0,8}", text in "[abé]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(Glob::new(pattern.as_str()).matches(&text), plainly(&chars(&pattern), &chars(&text)));
        }

        #[test]
        fn anything_ends(pattern in ".{0,20}", text in proptest::collection::vec(any::<u8>(), 0..20)) {
            Glob::new(pattern).matches_bytes(&text);
        }
    }
}
