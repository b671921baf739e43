//! Matches event names against shell patterns: `*`, `?`, `[a-z]`, `[!a-z]`.
//!
//! Leaves to others which names there are.

/// Whether all of `text` matches `pattern`. A `[` without its `]` stands for itself.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where to go on after a mismatch: behind the last `*`, one more byte swallowed by it.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        let step = match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'?') => Some(1),
            Some(b'[') => match set(&pattern[p..], text[t]) {
                Some((len, true)) => Some(len),
                Some((_, false)) => None,
                None => (text[t] == b'[').then_some(1),
            },
            Some(&byte) => (byte == text[t]).then_some(1),
            None => None,
        };
        match (step, retry) {
            (Some(len), _) => (p, t) = (p + len, t + 1),
            (None, Some((after, swallowed))) => {
                (p, t) = (after, swallowed + 1);
                retry = Some((after, swallowed + 1));
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// Length of the set at the begin of `pattern` and whether `byte` is in it; `None` if it is not closed.
fn set(pattern: &[u8], byte: u8) -> Option<(usize, bool)> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = if negated { 2 } else { 1 };
    let (mut at, mut found) = (first, false);
    loop {
        let low = *pattern.get(at)?;
        if low == b']' && at > first {
            return Some((at + 1, found != negated));
        }
        let high = match (pattern.get(at + 1), pattern.get(at + 2)) {
            (Some(b'-'), Some(&high)) if high != b']' => {
                at += 3;
                high
            }
            _ => {
                at += 1;
                low
            }
        };
        found |= (low..=high).contains(&byte);
    }
}

#[cfg(test)]
mod tests {
    use super::matches;
    use proptest::prelude::*;

    #[test]
    fn patterns_match_as_a_shell_matches() {
        for (pattern, text, expected) in [
            ("sched_*", "sched_switch", true),
            ("sched_*", "xsched_switch", false),
            ("*:sched_sw?tch", "sched:sched_switch", true),
            ("*a*b", "xaxxbxb", true),
            ("*a*b", "xaxxbxbc", false),
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("**", "abc", true),
            ("?", "", false),
            ("sys_[er]x*", "sys_exit", true),
            ("sys_[a-d]*", "sys_exit", false),
            ("sys_[!a-d]*", "sys_exit", true),
            ("a[]]b", "a]b", true),
            ("a[b", "a[b", true),
            ("a[a-", "a[a-", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn any_pattern_ends(pattern in ".{0,20}", text in ".{0,20}") {
            matches(&pattern, &text);
        }

        #[test]
        fn a_name_matches_itself_and_stars_around_its_parts(a in "[a-z_]{0,9}", b in "[a-z_]{0,9}") {
            let name = format!("{a}{b}");
            prop_assert!(matches(&name, &name));
            let starred = format!("{a}*{b}");
            let prefixed = format!("*{b}");
            prop_assert!(matches(&starred, &name));
            prop_assert!(matches(&prefixed, &name));
        }
    }
}
