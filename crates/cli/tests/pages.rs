//! What README and the book print was printed: each ```` ```console ```` block of theirs is run, command by
//! command, and the output has the shape that the page shows. Where it differs on purpose,
//!
//!     UPDATE=1 cargo test -p tracewing-cli --test pages
//!
//! runs the commands as release builds and writes what they print into the pages. `PAGE=part-of-a-path`
//! chooses pages. A block that cannot be run has `<!-- not run: REASON -->` on the line before it. Of all
//! other command lines in the pages' code, subcommands and options must exist.

#[path = "harness/mod.rs"]
mod harness;
#[path = "page_blocks/mod.rs"]
mod page_blocks;
#[path = "recorded/mod.rs"]
mod recorded;

use page_blocks::{blocks, fit, missing};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The examples that pages run, and the library that `record --locks` pre-loads.
const PACKAGES: [&str; 10] =
    ["-p", "shop", "-p", "quotes", "-p", "reactivity", "-p", "tracewing-preload", "-p", "tracewing-cli"];

/// Pages whose figures a benchmark writes.
const REPORTS: &str = "docs/reports";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The pages: path relative to the root, and text.
fn pages() -> BTreeMap<String, String> {
    let (root, mut pages, mut folders) = (root(), BTreeMap::new(), vec!["docs".to_owned()]);
    for page in ["README.md", "CONTRIBUTING.md"] {
        pages.insert(page.to_owned(), fs::read_to_string(root.join(page)).unwrap());
    }
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.ends_with(".md") && !path.starts_with(REPORTS) {
                pages.insert(path, fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    pages
}

/// Runs a command of a page; gives its output, errors included, and whether it succeeded.
fn run(command: &str, folder: &Path, programs: &Path) -> (Vec<String>, bool) {
    let path = format!("{}:{}", programs.display(), env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-c", &format!("exec 2>&1; {command}")])
        .current_dir(folder)
        .envs([("PATH", path.as_str()), ("COLUMNS", "118"), ("TZ", "UTC"), ("LC_ALL", "C.UTF-8")])
        .env("XDG_STATE_HOME", folder.join(".state"))
        .env_remove("CI")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace(&format!("{}/", folder.display()), "");
    let text = text.replace(programs.to_str().unwrap(), "target/release");
    (text.lines().flat_map(fit).collect(), output.status.success())
}

/// Gives this thread and its children a `/tmp` of their own, where no recorder but theirs is found: commands
/// such as `snapshot` take the only recording that runs.
fn hide_other_recordings() {
    // SAFETY: only the mount table and the working folder of this thread become its own; no reference of this
    // program depends on them.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }.unwrap();
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
    mount("tmpfs", "/tmp", "tmpfs", MountFlags::empty(), None).unwrap();
}

/// Runs a page's commands in one folder. Gives the page with what they print in place of what it says, and
/// what is missing of that.
fn run_page(page: &str, programs: &Path) -> (String, Vec<String>) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    let (mut differences, mut replaced) = (Vec::new(), Vec::new());
    for block in blocks(page).iter().filter(|block| block.runs()) {
        let mut content = Vec::new();
        for step in block.steps() {
            let (printed, succeeds) = run(&step.command, folder.path(), programs);
            if !succeeds {
                differences.push(format!("$ {}\nfails:\n  {}", step.command, printed.join("\n  ")));
            }
            for line in missing(&step.output, &printed) {
                let printed = printed.join("\n  ");
                differences.push(format!("$ {}\n- {line}\nprinted:\n  {printed}", step.command));
            }
            content.extend(format!("$ {}", step.command).lines().map(str::to_owned));
            content.extend(printed);
        }
        replaced.push((block.begin..block.begin + block.lines.len(), content));
    }
    for (range, content) in replaced.into_iter().rev() {
        lines.splice(range, content);
    }
    (lines.join("\n") + "\n", differences)
}

#[test]
fn commands_print_what_pages_say() {
    if !harness::traceable() {
        return;
    }
    let updates = env::var_os("UPDATE").is_some();
    let chosen = env::var("PAGE").unwrap_or_default();
    let programs = if updates {
        recorded::build(&[&["--release"], &PACKAGES[..]].concat()).with_file_name("release")
    } else {
        recorded::build(&PACKAGES)
    };
    if !programs.starts_with("/tmp") {
        hide_other_recordings();
    }
    let mut found = Vec::new();
    for (path, text) in pages().iter().filter(|(path, _)| path.contains(&chosen)) {
        let (updated, differences) = run_page(text, &programs);
        if updates && updated != *text {
            fs::write(root().join(path), updated).unwrap();
        }
        found.extend(differences.iter().map(|difference| format!("{path}: {difference}\n")));
    }
    let found = found.join("\n");
    if updates {
        eprintln!("{found}");
    } else {
        assert!(found.is_empty(), "UPDATE=1 writes the pages anew:\n{found}");
    }
}

#[test]
fn blocks_with_output_are_run_or_say_why_not() {
    let unmarked: Vec<_> = pages()
        .iter()
        .flat_map(|(path, text)| {
            let unmarked: Vec<_> =
                blocks(text).iter().filter(|block| block.is_unmarked()).map(|block| block.begin).collect();
            unmarked.into_iter().map(move |line| format!("{path}:{line}"))
        })
        .collect();
    assert!(unmarked.is_empty(), "neither ```console nor marked <!-- not run: REASON -->: {unmarked:#?}");
}

/// The command lines of a page's code that call tracewing, each as the words after `tracewing`.
fn command_lines(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        let code = line.trim_start().trim_start_matches("$ ");
        if (fenced || line.starts_with("    ")) && code.starts_with("tracewing ") {
            let words = code
                .split_whitespace()
                .skip(1)
                .take_while(|word| *word != "--" && !word.starts_with('#') && *word != "|");
            found.push((index + 1, words.map(str::to_owned).collect()));
        }
    }
    found
}

#[test]
fn subcommands_and_options_of_pages_exist() {
    let help = |command: &[String]| {
        let mut tracewing = Command::new(env!("CARGO_BIN_EXE_tracewing"));
        let output = tracewing.args(command).arg("--help").output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    let (mut known, mut wrong) = (BTreeMap::new(), Vec::new());
    for (path, text) in &pages() {
        for (line, words) in command_lines(text) {
            let first = words.first().map(String::as_str).unwrap_or_default();
            let depth = if ["sched", "session", "channel", "trigger"].contains(&first) { 2 } else { 1 };
            let command = words.get(..depth).filter(|words| words[0].starts_with(char::is_lowercase));
            let Some(command) = command else { continue };
            let Some(of_it) = known.entry(command.to_vec()).or_insert_with(|| help(command)) else {
                wrong.push(format!("{path}:{line}: no command {command:?}"));
                continue;
            };
            // These take options of `record`.
            let of_record =
                ["create", "add"].contains(&command.last().map(String::as_str).unwrap_or_default());
            let more = ["record".to_owned(), first.to_owned()]
                .map(|command| of_record.then(|| help(&[command])).flatten().unwrap_or_default());
            let options_of_it = format!("{of_it}{}", more.concat());
            let options = words.iter().filter(|word| word.starts_with("--"));
            let options = options.map(|word| word.split(['=', ';', ',']).next().unwrap_or_default());
            wrong.extend(
                options
                    .filter(|option| !options_of_it.contains(option))
                    .map(|option| format!("{path}:{line}: no {option}")),
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

mod shapes {
    use super::page_blocks::{Step, blocks, fit, missing};

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn steps_are_commands_with_their_output() {
        let page = "```console\n$ a \\\n    b\none\ntwo\n$ c\n```\n";
        let steps = blocks(page)[0].steps();
        let step = |command: &str, output: &[&str]| Step {
            command: command.to_owned(),
            output: output.iter().map(|line| (*line).to_owned()).collect(),
        };
        assert_eq!(steps, [step("a \\\n    b", &["one", "two"]), step("c", &[])]);
    }

    #[test]
    fn a_command_has_its_input_in_the_page() {
        let page = "```console\n$ cat > a <<'END'\n$ b\nEND\n$ c\nd\n```\n";
        let steps = blocks(page)[0].steps();
        assert_eq!(steps.len(), 2);
        assert_eq!(steps[0].command, "cat > a <<'END'\n$ b\nEND");
        assert_eq!(steps[1].output, ["d"]);
    }

    #[test]
    fn blocks_are_run_unless_a_reason_is_before_them() {
        let runs = |page: &str| blocks(page)[0].runs();
        let is_unmarked = |page: &str| blocks(page)[0].is_unmarked();
        assert!(runs("```console\n$ a\n```\n"));
        assert!(!runs("<!-- not run: needs a redis-server -->\n```console\n$ a\n```\n"));
        assert!(runs("<!-- not run: -->\n```console\n$ a\n```\n"));
        assert!(is_unmarked("```\n$ a\n```\n"));
        assert!(!is_unmarked("<!-- not run: needs a redis-server -->\n```text\n$ a\n```\n"));
    }

    #[test]
    fn other_numbers_have_the_same_shape_and_other_words_have_not() {
        let page =
            lines("process  name  wait ms\n  4711  shop  2.000\n  4712  shop  3.000\n2 threads, 5.0 ms");
        let same = lines("process  name  wait ms\n  1  shop  2 µs\n7 threads, 5.0 s\n");
        assert_eq!(missing(&page, &same), [""; 0]);
        let other = lines("process  name  idle  blocked  cause\n 1  shop  2\n7 threads, 5.0 s\n");
        assert_eq!(missing(&page, &other), ["process  name  wait ms"]);
        let functions = lines("self  time  function  object\n 3  30.0  3  3.0 ms  poll  shop");
        let named =
            lines("self  time  function  object\n 1  10.0  1  1 s  <a::Of<S> as b::Trait>::poll  shop");
        assert_eq!(missing(&functions, &named), [""; 0]);
        let gone = lines("process  name  wait ms\n");
        assert_eq!(missing(&page, &gone).len(), 3);
        let histogram = lines(" from  count\n 1 ns  3  ██▎\n 2 ns  0\n 5 ns  9  █████");
        assert_eq!(missing(&histogram, &lines("from  count\n1 ms  1  ▏")), [""; 0]);
    }

    #[test]
    fn a_message_is_one_line_wherever_it_is_wrapped() {
        let message =
            "tracewing: the recorder lost events of one CPU, and what the threads of the program did there";
        let [long, longer] = ["", "in this recording "]
            .map(|words| format!("{message} {words}is not in the packets of that CPU"));
        let (page, printed) = (fit(&long), fit(&longer));
        assert_eq!((page.len(), printed.len()), (2, 2));
        assert_eq!(missing(&page, &printed), [""; 0]);
        assert_eq!(missing(&page, &lines("tracewing: nothing else")), [long]);
    }

    #[test]
    fn what_depends_on_the_machine_may_be_absent() {
        let page =
            lines("name\n25 other threads also appear, but were not followed, so their times are unknown");
        assert_eq!(missing(&page, &lines("name")), [""; 0]);
    }
}
