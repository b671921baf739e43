//! The rules about links between pages: each leads to a file, and to a heading if it names one; the pages of
//! the book are all in its table of contents, and link to nothing outside of it, so that they read alike in
//! the book and on a forge.

use super::{File, Finding, Tree};

/// The folder of the book.
const BOOK: &str = "docs/";

/// The book's table of contents.
const CONTENTS: &str = "docs/SUMMARY.md";

pub(super) fn check(file: &File, tree: &Tree, findings: &mut Vec<Finding>) {
    if !file.path.ends_with(".md") {
        return;
    }
    for (index, target) in links(&file.text) {
        if let Err(message) = follow(file, tree, target) {
            findings.push(file.finding(index + 1, format!("link to `{target}`: {message}")));
        }
    }
    if file.path.starts_with(BOOK) && file.path != CONTENTS && !is_in_contents(file, tree) {
        findings.push(file.finding(1, format!("is not in {CONTENTS}: list it there")));
    }
}

/// The targets of a page's links to files and headings, with the index of their line. Links in code and to
/// the web are left out.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(index, line)| {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        targets.filter(|target| !target.contains("://")).map(move |target| (index, target))
    })
}

/// The lines of a page that are not in fenced code, with their indexes.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

/// Whether a link's file and heading exist, and may be linked to from this page.
fn follow(file: &File, tree: &Tree, target: &str) -> Result<(), String> {
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = if path.is_empty() { file.path.clone() } else { resolve(folder, path)? };
    if !tree.paths.contains(&path) {
        return Err("no such file".to_owned());
    }
    if file.path.starts_with(BOOK) && !path.starts_with(BOOK) {
        return Err(format!("leaves the book: name the file as `{path}`, without a link"));
    }
    let (Some(anchor), Some(page)) = (anchor, tree.files.get(&path)) else { return Ok(()) };
    if path.ends_with(".md") && !headings(&page.text).any(|heading| heading == anchor) {
        return Err(format!("{path} has no such heading"));
    }
    Ok(())
}

/// A path relative to a folder, as one relative to the project's root.
fn resolve(folder: &str, path: &str) -> Result<String, String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop().ok_or("leads out of the project")?),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// The anchors of a page's headings, as forges and mdBook make them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let titles = prose(text).filter(|(_, line)| line.starts_with('#'));
    titles.map(|(_, line)| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

fn is_in_contents(file: &File, tree: &Tree) -> bool {
    let Some(contents) = tree.files.get(CONTENTS) else { return true };
    let path = &file.path[BOOK.len()..];
    links(&contents.text).any(|(_, target)| target.trim_start_matches("./") == path)
}

#[cfg(test)]
mod tests {
    use super::super::{Tree, check};

    fn of(path: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("LICENSE.md", "# Map\n"),
            ("docs/SUMMARY.md", "- [Events](reference/page.md)\n- [Page](page.md)\n"),
            (
                "docs/reference/page.md",
                "# Events\n\n## `lock:requested`, and more\n\n```\n# no heading\n```\n",
            ),
            ("docs/page.md", "# Page\n"),
            (path, text),
        ]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_link_to_a_file_or_heading_that_is_gone_is_found() {
        assert!(
            of("docs/page.md", "[a](reference/gone.txt)\n")[0].contains("docs/page.md:1: link to `reference")
        );
        assert!(of("docs/page.md", "\n[a](reference/page.md#gone)\n")[0].contains("docs/page.md:2:"));
        assert!(of("docs/page.md", "[a](reference/page.md#no-heading)\n")[0].contains("no such heading"));
        assert!(of("docs/page.md", "# A\n[a](#b)\n")[0].contains("no such heading"));
        assert!(of("README.md", "[a](../page.txt)\n")[0].contains("leads out"));
    }

    #[test]
    fn links_that_lead_somewhere_are_not() {
        for text in [
            "[a](reference/page.md#lockrequested-and-more) [b](./reference/page.md)\n",
            "# A b\n[a](#a-b) [w](https://example.org/#x)\n",
            "```\n[a](gone.txt)\n```\n",
        ] {
            assert_eq!(of("docs/page.md", text), [""; 0], "{text}");
        }
        assert!(of("README.md", "[a](docs/page.md#page) [b](LICENSE.md)\n").is_empty());
    }

    #[test]
    fn a_page_outside_of_the_contents_and_a_link_out_of_the_book_are_found() {
        assert!(of("docs/other.md", "# Other\n")[0].contains("docs/other.md:1: is not in docs/SUMMARY.md"));
        assert!(of("docs/page.md", "[a](../LICENSE.md)\n")[0].contains("leaves the book"));
    }
}
