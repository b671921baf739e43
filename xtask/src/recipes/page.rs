//! What the page says: the commands of its sections, and the code that it adds to programs.

use super::{PROGRAMS, Program, RECIPES};

/// What the page has otherwise than the programs and the list of recipes. `read` gives the text of a file of
/// the project.
pub fn faults(page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut faults = Vec::new();
    for recipe in RECIPES {
        match recipe.commands(page) {
            None => faults.push(format!("{} has no commands for {}", recipe.section, recipe.name)),
            Some(commands) if commands.len() != recipe.shows.len() => faults.push(format!(
                "{} has {} commands for {}, not {}",
                recipe.section,
                commands.len(),
                recipe.name,
                recipe.shows.len()
            )),
            Some(_) => {}
        }
        if let Program::Rust(..) = recipe.program {
            let file = format!("{PROGRAMS}/src/bin/{}.rs", recipe.name);
            match (added_to(page, recipe.name), read(&file)) {
                (None, _) => faults.push(format!("no code for {}", recipe.name)),
                (_, None) => faults.push(format!("there is no {file}")),
                (Some(code), Some(source)) if !source.contains(&code) => {
                    faults.push(format!("{file} lacks `{code}`"));
                }
                (Some(_), Some(_)) => {}
            }
        }
    }
    faults
}

/// The first code in the line of a crate in the page's tables.
fn added_to(page: &str, crate_name: &str) -> Option<String> {
    page.lines().filter(|line| line.starts_with("| ")).find_map(|line| {
        let line = line.replace("\\|", "\u{1}");
        let mut cells = line.split('|').skip(1).map(str::trim);
        let is_of_it = cells.next()?.split(' ').next() == Some(crate_name);
        let code = cells.next()?.split('`').nth(1)?;
        is_of_it.then(|| code.replace('\u{1}', "|"))
    })
}

/// The blocks of commands in a section of the page, which are its indented lines. A line that ends with `\\`
/// and the next one are one command.
pub(super) fn blocks(page: &str, section: &str) -> Vec<Vec<String>> {
    let title = format!("## {section}");
    let lines = page.lines().skip_while(|line| *line != title).skip(1);
    let lines: Vec<_> =
        lines.take_while(|line| !line.starts_with("## ")).map(|line| line.strip_prefix("    ")).collect();
    let blocks = lines.split(Option::is_none).filter(|block| !block.is_empty());
    blocks.map(|block| commands(block.iter().flatten())).collect()
}

fn commands<'a>(lines: impl Iterator<Item = &'a &'a str>) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for line in lines {
        match commands.last_mut().filter(|command| command.ends_with('\\')) {
            Some(command) => *command += &format!("\n{line}"),
            None => commands.push((*line).to_owned()),
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipes::PAGE;

    const TABLE: &str = "| crate | add |\n|---|---|\n| rayon 1 | `run(\\|n\\| n)` gives `names` |\n";

    #[test]
    fn commands_are_those_of_a_block() {
        let page = "## A\n\n    a \\\n      b\n    c # d\n\nText.\n\n    e\n\n## B\n\n    f\n";
        let expected = [vec!["a \\\n  b", "c # d"], vec!["e"]];
        assert_eq!(blocks(page, "A"), expected);
        assert_eq!(blocks(page, "B"), [["f"]]);
        assert!(blocks(page, "C").is_empty());
    }

    #[test]
    fn the_code_of_a_crate_is_the_first_in_its_line() {
        assert_eq!(added_to(TABLE, "rayon").as_deref(), Some("run(|n| n)"));
        assert_eq!(added_to(TABLE, "tower"), None);
    }

    #[test]
    fn a_program_without_the_code_of_the_page_is_a_fault() {
        let of_rayon = |source: &str| {
            let faults = faults(TABLE, |_| Some(source.to_owned()));
            faults.iter().filter(|fault| fault.contains("rayon.rs lacks `run(|n| n)`")).count()
        };
        assert_eq!((of_rayon("run(|n| n);"), of_rayon("run(|m| m);")), (0, 1));
    }

    #[test]
    fn the_page_agrees_with_the_programs() {
        let root = crate::root().unwrap();
        let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
        let page = read(PAGE).unwrap();
        assert_eq!(faults(&page, read), Vec::<String>::new());
        let other = page.replace("    tracewing threads trace\n", "").replace(".layer(", ".layers(");
        assert_eq!(faults(&other, read).len(), 3);
    }
}
