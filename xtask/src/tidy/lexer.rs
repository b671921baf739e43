//! Splits Rust source, line by line, into code, comments and the contents of string literals, so that a rule
//! about one of them is not misled by another.
//!
//! It knows comments (nested too), string literals (raw, byte and C strings too), character literals and
//! lifetimes; it does not parse, and code that does not compile may be split wrongly.

/// One line of source in three parts.
#[derive(Debug, Default, PartialEq)]
pub struct Line {
    /// The code; string literals are left as `""`.
    pub code: String,
    /// The text of comments, their `//` or `/*` included.
    pub comment: String,
    /// What stands in string literals.
    pub strings: String,
}

impl Line {
    /// A line with a comment and nothing else.
    pub fn is_comment(&self) -> bool {
        self.code.trim().is_empty() && !self.comment.is_empty()
    }
}

enum State {
    Code,
    LineComment,
    BlockComment { depth: u32 },
    String,
    RawString { hashes: usize },
}

/// Splits a whole file.
pub fn split(text: &str) -> Vec<Line> {
    let mut state = State::Code;
    text.lines().map(|line| split_line(line, &mut state)).collect()
}

fn split_line(text: &str, state: &mut State) -> Line {
    let characters: Vec<char> = text.chars().collect();
    let mut line = Line::default();
    let mut at = 0;
    if let State::LineComment = state {
        *state = State::Code;
    }
    while at < characters.len() {
        let rest = &characters[at..];
        at += match state {
            State::Code => code(rest, &mut line, state),
            State::LineComment => {
                line.comment.extend(rest);
                rest.len()
            }
            State::BlockComment { depth } => {
                let taken = if starts(rest, "*/") || starts(rest, "/*") { 2 } else { 1 };
                line.comment.extend(&rest[..taken]);
                if starts(rest, "/*") {
                    *depth += 1;
                } else if starts(rest, "*/") {
                    *depth -= 1;
                    if *depth == 0 {
                        *state = State::Code;
                    }
                }
                taken
            }
            State::String => match rest[0] {
                '\\' => {
                    line.strings.extend(rest.get(1));
                    2
                }
                '"' => {
                    line.code.push('"');
                    *state = State::Code;
                    1
                }
                other => {
                    line.strings.push(other);
                    1
                }
            },
            State::RawString { hashes } => {
                if rest[0] == '"' && rest[1..].iter().take_while(|c| **c == '#').count() >= *hashes {
                    let taken = 1 + *hashes;
                    line.code.push('"');
                    *state = State::Code;
                    taken
                } else {
                    line.strings.push(rest[0]);
                    1
                }
            }
        };
    }
    line
}

/// Takes the next piece of code; gives how many characters it was.
fn code(rest: &[char], line: &mut Line, state: &mut State) -> usize {
    if starts(rest, "//") {
        *state = State::LineComment;
        return 0;
    }
    if starts(rest, "/*") {
        *state = State::BlockComment { depth: 1 };
        line.comment.push_str("/*");
        return 2;
    }
    let inside_a_word = line.code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    if !inside_a_word && let Some((taken, hashes)) = raw_string(rest) {
        *state = State::RawString { hashes };
        line.code.push('"');
        return taken;
    }
    match rest[0] {
        '"' => {
            *state = State::String;
            line.code.push('"');
            1
        }
        '\'' => {
            let taken = character_literal(rest).unwrap_or(1);
            line.code.push('\'');
            taken
        }
        other => {
            line.code.push(other);
            1
        }
    }
}

/// `r"`, `br##"`, `cr"`: the length of the opening and its number of hashes.
fn raw_string(rest: &[char]) -> Option<(usize, usize)> {
    let prefix = match rest {
        ['r', ..] => 1,
        ['b' | 'c', 'r', ..] => 2,
        _ => return None,
    };
    let hashes = rest[prefix..].iter().take_while(|c| **c == '#').count();
    (rest.get(prefix + hashes) == Some(&'"')).then_some((prefix + hashes + 1, hashes))
}

/// The length of a character literal; nothing if the quote begins a lifetime.
fn character_literal(rest: &[char]) -> Option<usize> {
    match rest {
        ['\'', '\\', _, ..] => rest[3..].iter().position(|c| *c == '\'').map(|end| end + 4),
        ['\'', _, '\'', ..] => Some(3),
        _ => None,
    }
}

fn starts(rest: &[char], with: &str) -> bool {
    with.chars().enumerate().all(|(at, expected)| rest.get(at) == Some(&expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> (String, String, String) {
        let line = split(text).remove(0);
        (line.code, line.comment, line.strings)
    }

    fn parts(code: &str, comment: &str, strings: &str) -> (String, String, String) {
        (code.into(), comment.into(), strings.into())
    }

    #[test]
    fn comments_and_strings_are_taken_apart() {
        assert_eq!(one(r#"let a = "b // c"; // d "e""#), parts(r#"let a = ""; "#, r#"// d "e""#, "b // c"));
        assert_eq!(one(r#"f("a\"b")"#), parts(r#"f("")"#, "", r#"a"b"#));
        assert_eq!(one("a /* b /* c */ d */ e"), parts("a  e", "/* b /* c */ d */", ""));
    }

    #[test]
    fn raw_strings_end_at_their_own_number_of_hashes() {
        assert_eq!(one(r###"f(r##"a"#b"##)"###), parts(r#"f("")"#, "", r##"a"#b"##));
        assert_eq!(one(r#"for "x""#), parts(r#"for """#, "", "x"));
    }

    #[test]
    fn quotes_of_characters_and_lifetimes_open_no_string() {
        assert_eq!(one(r#"('"', '\'', '\u{41}', x)"#), parts("(', ', ', x)", "", ""));
        assert_eq!(one("fn f<'a>(x: &'a str) // b"), parts("fn f<'a>(x: &'a str) ", "// b", ""));
    }

    #[test]
    fn strings_and_block_comments_continue_over_lines() {
        let lines = split("f(\"a\nb // c\") /* d\ne */ g");
        assert_eq!(lines[1].strings, "b // c");
        assert_eq!(lines[2], Line { code: " g".into(), comment: "e */".into(), strings: String::new() });
    }
}
