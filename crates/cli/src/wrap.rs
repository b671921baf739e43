//! Breaks notes, warnings and help between words where a terminal would break them anywhere.

/// The text in lines of at most `width` characters, where words allow it. `before` characters precede it in
/// its first line; the others are indented. Without a width, as in files and pipes, it stays one line.
pub fn wrapped(text: &str, before: usize, indent: usize, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let (mut lines, mut column) = (String::new(), before);
    for (index, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if index > 0 && column + 1 + length > width {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if index > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words() {
        assert_eq!(wrapped("one two three", 0, 2, Some(8)), "one two\n  three");
        assert_eq!(wrapped("one two three", 5, 0, Some(8)), "one\ntwo\nthree");
        assert_eq!(wrapped("one two three", 0, 2, None), "one two three");
        assert_eq!(wrapped("a-word-without-an-end b", 0, 1, Some(5)), "a-word-without-an-end\n b");
        assert_eq!(wrapped("", 0, 0, Some(5)), "");
    }
}
