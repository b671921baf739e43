//! Event rules: shell patterns (`*`, `?`, `[a-z]`, `[!a-z]`) that choose event classes by name.
//!
//! Bytes are compared, so `?` is one byte. Which names there are is others' business.

/// The patterns of a recording. A class is wanted if one of them matches its whole name, or if it is one of
/// tracewing's own (`tracewing:*`).
#[derive(Debug, Clone, Default)]
pub struct EventRules {
    patterns: Vec<String>,
}

/// What every recording takes.
const BUILT_IN: &str = "tracewing:*";

impl EventRules {
    /// The given patterns; none at all means every event.
    pub fn new<S: Into<String>>(patterns: impl IntoIterator<Item = S>) -> Self {
        Self { patterns: patterns.into_iter().map(Into::into).collect() }
    }

    /// Whether the recording wants the class of this name.
    pub fn wants(&self, name: &str) -> bool {
        self.patterns.is_empty()
            || matches(BUILT_IN, name)
            || self.patterns.iter().any(|pattern| matches(pattern, name))
    }

    /// The patterns, in the order given.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }
}

/// Whether all of `text` matches `pattern`. A `[` that is never closed stands for itself.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut next) = (0, 0);
    // Where to go on after a mismatch: behind the last star, which then swallows one byte more.
    let mut star = None;
    while next < text.len() {
        let taken = match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                star = Some((at, next));
                continue;
            }
            Some(b'?') => Some(1),
            Some(b'[') => match set(&pattern[at..], text[next]) {
                Some((len, found)) => found.then_some(len),
                None => (text[next] == b'[').then_some(1),
            },
            Some(&byte) => (byte == text[next]).then_some(1),
            None => None,
        };
        if let Some(len) = taken {
            (at, next) = (at + len, next + 1);
        } else if let Some((behind, swallowed)) = star {
            (at, next) = (behind, swallowed + 1);
            star = Some((behind, next));
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// Length of the set that `pattern` begins with, and whether `byte` is in it; `None` if it is not closed.
fn set(pattern: &[u8], byte: u8) -> Option<(usize, bool)> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = 1 + usize::from(negated);
    let (mut at, mut found) = (first, false);
    loop {
        let low = *pattern.get(at)?;
        if low == b']' && at > first {
            return Some((at + 1, found != negated));
        }
        let mut high = low;
        if let (Some(b'-'), Some(&last)) = (pattern.get(at + 1), pattern.get(at + 2))
            && last != b']'
        {
            high = last;
            at += 2;
        }
        at += 1;
        found |= (low..=high).contains(&byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, expected) in [
            ("shop:*", "shop:enqueued", true),
            ("shop:*", "workshop:enqueued", false),
            ("*:enq*ed", "shop:enqueued", true),
            ("*a*b", "xaxxbxb", true),
            ("*a*b", "xaxxbxbc", false),
            ("", "", true),
            ("", "a", false),
            ("**", "abc", true),
            ("?", "", false),
            ("e[0-9]", "e7", true),
            ("e[!0-9]", "e7", false),
            ("a[]]b", "a]b", true),
            ("a[b", "a[b", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn own_events_are_always_wanted() {
        let rules = EventRules::new(["shop:*"]);
        assert!(rules.wants("tracewing:loss") && rules.wants("shop:a") && !rules.wants("bar:a"));
        assert!(EventRules::default().wants("bar:a"));
    }
}
