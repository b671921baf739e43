//! Shell patterns for event names: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a character that stands for itself.

/// A pattern that a whole name must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Vec<Token>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Any,
    One,
    Literal(char),
    Set { negated: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Reads a pattern. A `[` that is never closed stands for itself.
    pub fn new(pattern: &str) -> Self {
        let chars: Vec<char> = pattern.chars().collect();
        let mut tokens = Vec::new();
        let mut at = 0;
        while let Some(&char) = chars.get(at) {
            at += 1;
            match char {
                '*' if tokens.last() == Some(&Token::Any) => {}
                '*' => tokens.push(Token::Any),
                '?' => tokens.push(Token::One),
                '\\' if at < chars.len() => {
                    tokens.push(Token::Literal(chars[at]));
                    at += 1;
                }
                '[' => match set(&chars[at..]) {
                    Some((token, length)) => {
                        tokens.push(token);
                        at += length;
                    }
                    None => tokens.push(Token::Literal('[')),
                },
                other => tokens.push(Token::Literal(other)),
            }
        }
        Glob(tokens)
    }

    /// Whether the whole of `name` matches.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut token, mut at) = (0, 0);
        let mut retry = None;
        while at < name.len() {
            match self.0.get(token) {
                Some(Token::Any) => {
                    retry = Some((token, at));
                    token += 1;
                    continue;
                }
                Some(other) if other.accepts(name[at]) => {
                    token += 1;
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let Some((any, start)) = retry else { return false };
            retry = Some((any, start + 1));
            token = any + 1;
            at = start + 1;
        }
        self.0[token..].iter().all(|token| *token == Token::Any)
    }
}

impl Token {
    fn accepts(&self, char: char) -> bool {
        match self {
            Token::Any | Token::One => true,
            Token::Literal(literal) => *literal == char,
            Token::Set { negated, ranges } => {
                ranges.iter().any(|&(first, last)| (first..=last).contains(&char)) != *negated
            }
        }
    }
}

/// Reads a set behind its `[`: the token and the number of characters up to and with the `]`.
fn set(chars: &[char]) -> Option<(Token, usize)> {
    let negated = matches!(chars.first(), Some('!' | '^'));
    let mut at = usize::from(negated);
    let mut ranges = Vec::new();
    loop {
        let first = *chars.get(at)?;
        if first == ']' && !ranges.is_empty() {
            return Some((Token::Set { negated, ranges }, at + 1));
        }
        match (chars.get(at + 1), chars.get(at + 2)) {
            (Some('-'), Some(&last)) if last != ']' => {
                ranges.push((first, last));
                at += 3;
            }
            _ => {
                ranges.push((first, first));
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn matches_as_a_shell_does() {
        for (pattern, name, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("sched_*", "sched_switch", true),
            ("sched_*", "a_sched_switch", false),
            ("*:in", "shop:in:in", true),
            ("*a*b*c", "xxaxxbxxbxc", true),
            ("*a*b*c", "xxaxxbxxbxcd", false),
            ("s?e", "sie", true),
            ("s?e", "se", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            ("[]a]", "]", true),
            ("[a-]", "-", true),
            ("[ab", "[ab", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("grüße*", "grüßen", true),
        ] {
            assert_eq!(Glob::new(pattern).matches(name), expected, "{pattern} on {name}");
        }
    }
}
