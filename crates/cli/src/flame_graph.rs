//! Flame graphs (Gregg, *The Flame Graph*, 2016): pictures of what called what, by the crate `inferno`.

use crate::output::shown;
use anyhow::{Context, Result, anyhow, ensure};
use inferno::flamegraph::{self, Options};
use std::io::{BufWriter, Write};
use std::path::Path;
use tracewing_analysis::CallNode;
use tracewing_files::OutputFile;

/// Width of a character as a part of the font's size. With the default of 0.59, names in wide fonts stick
/// out of their boxes where no script shortens them, as in the pictures of a page.
const FONT_WIDTH: f64 = 0.66;

/// A line for each call chain, the outermost function first, with its own time in ns.
pub fn stacks(graph: &CallNode) -> Vec<String> {
    let mut lines = Vec::new();
    let mut left: Vec<(String, &CallNode)> = vec![(String::new(), graph)];
    while let Some((chain, node)) = left.pop() {
        if !node.own_ns.is_zero() {
            lines.push(format!("{chain} {}", node.own_ns.as_ns()));
        }
        for (name, node) in &node.below {
            let name = name.replace([';', '\n'], ":");
            left.push((if chain.is_empty() { name } else { format!("{chain};{name}") }, node));
        }
    }
    lines
}

/// Writes a flame graph of lines of call chains, each with a number in `unit`.
///
/// # Errors
/// The file cannot be written.
pub fn write(file: &Path, title: &str, unit: &str, stacks: &[String]) -> Result<()> {
    let context = || format!("cannot write {}", shown(&file.display().to_string()));
    if stacks.is_empty() {
        return Err(anyhow!("there is nothing to draw"));
    }
    let width = |stack: &String| stack.rsplit(' ').next().and_then(|last| last.parse::<u64>().ok());
    let sum = stacks.iter().filter_map(width).try_fold(0_u64, u64::checked_add);
    ensure!(
        sum.is_some(),
        "there are more than {} {unit} to draw: the recording's values make no sense",
        u64::MAX
    );
    let mut options = Options::default();
    title.clone_into(&mut options.title);
    unit.clone_into(&mut options.count_name);
    options.font_width = FONT_WIDTH;
    let mut out = BufWriter::new(OutputFile::create(file).with_context(context)?);
    let lines = stacks.iter().map(String::as_str);
    flamegraph::from_lines(&mut options, lines, &mut out).with_context(context)?;
    out.flush().with_context(context)?;
    let file = out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(context)?;
    file.finish().with_context(context)
}
