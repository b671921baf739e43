//! Values of options of `tracewing record`: sizes, rates and times, as users write them.

use std::num::NonZeroUsize;
use std::time::Duration;
use tracewing_session::options::Stacks;
use tracewing_units::Pid;

/// Bytes, written as people write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub usize);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            size if size.is_multiple_of(1 << 20) => write!(f, "{}M", size >> 20),
            size if size.is_multiple_of(1 << 10) => write!(f, "{}K", size >> 10),
            size => write!(f, "{size}"),
        }
    }
}

pub fn parse_size(text: &str) -> Result<Size, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let size = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(1 << shift));
    size.map(Size).ok_or_else(|| "expected a number of bytes, optionally followed by K, M or G".to_owned())
}

/// Longest name of a session or a channel.
pub const LONGEST_NAME: usize = 64;

/// A session's name, or SESSION/CHANNEL.
pub fn parse_name(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((session, channel)) => check_name(session).and_then(|()| check_name(channel))?,
        None => check_name(text)?,
    }
    Ok(text.to_owned())
}

/// Whether a word can be a name: no process id, no option, no path, nothing that a terminal or a shell
/// interprets.
pub fn check_name(text: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if begins_well && !is_number && text.len() <= LONGEST_NAME && text.chars().all(is_plain) {
        Ok(())
    } else {
        Err(format!(
            "expected a name of at most {LONGEST_NAME} letters, digits, `-`, `_` and `.`, which begins with a letter or digit \
             and is no number"
        ))
    }
}

/// The least size of an archive: each has metadata and a description.
const SMALLEST_ARCHIVE: usize = 64 << 10;

pub fn parse_archive_size(text: &str) -> Result<u64, String> {
    let Size(size) = parse_size(text)?;
    if size < SMALLEST_ARCHIVE {
        return Err(format!("expected at least {}", Size(SMALLEST_ARCHIVE)));
    }
    Ok(size as u64)
}

/// Parts of `--total-size` that archives have where nothing says otherwise.
const PARTS: u64 = 8;

/// The least size of all archives.
const LEAST_TOTAL_SIZE: u64 = SMALLEST_ARCHIVE as u64 * PARTS;

pub fn parse_total_size(text: &str) -> Result<u64, String> {
    let Size(size) = parse_size(text)?;
    let least = LEAST_TOTAL_SIZE as usize;
    if size < least { Err(format!("expected at least {}", Size(least))) } else { Ok(size as u64) }
}

/// The part of `--total-size` that an archive has where nothing says otherwise and so many are kept.
pub fn part_of(total: u64, keep: Option<NonZeroUsize>) -> u64 {
    let parts = keep.map_or(PARTS, |keep| keep.get() as u64);
    (total / parts).max(SMALLEST_ARCHIVE as u64)
}

/// At least the archive that is written, and one that can be read.
pub fn parse_keep(text: &str) -> Result<NonZeroUsize, String> {
    let keep = text.parse::<NonZeroUsize>().ok().filter(|keep| keep.get() >= 2);
    keep.ok_or_else(|| "expected a number of archives or snapshots, at least 2".to_owned())
}

/// The least time of an archive.
const SHORTEST_PERIOD: Duration = Duration::from_secs(1);

pub fn parse_period(text: &str) -> Result<Duration, String> {
    let period = parse_seconds(text)?;
    if period < SHORTEST_PERIOD { Err("expected at least 1 second".to_owned()) } else { Ok(period) }
}

pub fn parse_hertz(text: &str) -> Result<u32, String> {
    let hertz = text.parse().ok().filter(|hertz| *hertz > 0);
    hertz.ok_or_else(|| "expected a number of samples per second; put the command after --".to_owned())
}

/// Bytes that perf copies, too.
const STACK_BYTES: u16 = 8 << 10;

pub fn parse_stacks(text: &str) -> Result<Stacks, String> {
    let (method, bytes) = text.split_once(',').map_or((text, None), |(method, bytes)| (method, Some(bytes)));
    match (method, bytes) {
        ("fp", None) => Ok(Stacks::FramePointers),
        ("dwarf", _) if !cfg!(target_arch = "x86_64") => {
            Err("dwarf needs an x86-64 processor; fp follows frame pointers".to_owned())
        }
        ("dwarf", None) => Ok(Stacks::Copied { bytes: STACK_BYTES }),
        ("dwarf", Some(bytes)) => {
            let Size(bytes) = parse_size(bytes)?;
            let bytes = u16::try_from(bytes).ok().filter(|bytes| *bytes > 0 && *bytes <= Stacks::MOST);
            let bytes = bytes.filter(|bytes| bytes.is_multiple_of(8));
            let bytes = bytes.ok_or_else(|| format!("expected a multiple of 8 up to {}", Stacks::MOST))?;
            Ok(Stacks::Copied { bytes })
        }
        _ => Err("expected fp, dwarf, or dwarf,BYTES".to_owned()),
    }
}

pub fn parse_pid(text: &str) -> Result<Pid, String> {
    let pid = text.trim().parse().ok().filter(|pid| *pid > 0);
    pid.map(Pid).ok_or_else(|| "expected a process id; --name takes names".to_owned())
}

pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "expected a number of seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, size) in [("4096", 4096), ("512K", 512 << 10), ("1m", 1 << 20), ("1G", 1 << 30)] {
            assert_eq!(parse_size(text), Ok(Size(size)));
        }
        for text in ["", "K", "-1", "1T", "99999999999999999999", "18446744073709551615G", "ö"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!(Size(512 << 10).to_string(), "512K");
        assert_eq!(parse_archive_size("64K"), Ok(64 << 10));
        assert_eq!(parse_archive_size("65535"), Err("expected at least 64K".to_owned()));
        assert_eq!(parse_period("1.5"), Ok(Duration::from_millis(1500)));
        for text in ["0", "0.999", "-1", "nan", "inf", "1e300"] {
            assert!(parse_period(text).is_err(), "{text}");
        }
    }
}
