//! Pages of the package: links to files of the repository that are not in it become plain text.

/// A page, of whose links those to files stay for which `is_there` says yes.
pub fn without_dead(page: &str, is_there: impl Fn(&str) -> bool) -> String {
    let is_dead = |target: &str| {
        let file = target.split('#').next().unwrap_or_default();
        !file.is_empty() && !target.contains("://") && !target.contains(' ') && !is_there(file)
    };
    let (mut out, mut rest) = (String::new(), page);
    while let Some((before, after)) = rest.split_once("](") {
        let Some((target, tail)) = after.split_once(')') else { break };
        match before.rfind('[').filter(|_| is_dead(target)) {
            Some(open) => out.extend([&before[..open], &before[open + 1..]]),
            None => out.extend([before, "](", target, ")"]),
        }
        rest = tail;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_what_is_not_there_become_text() {
        let page = "a [b](gone.md) c [d\ne](there.md#f) [h](https://i.org) [j](#k) l[0](m n)\n[o](gone.md#p)";
        let expected = "a b c [d\ne](there.md#f) [h](https://i.org) [j](#k) l[0](m n)\no";
        assert_eq!(without_dead(page, |file| file == "there.md"), expected);
    }
}
