//! The mappings of a process, as the kernel lists them in `/proc/PID/maps` (`man 5 proc_pid_maps`).

use super::memory::Mapping;

/// The readable mappings, by address. Device memory is left out, since reading it may have side effects.
pub(super) fn parse(maps: &[u8]) -> Vec<Mapping> {
    maps.split(|byte| *byte == b'\n').filter_map(mapping).collect()
}

/// A line of the list, such as `7f0000000000-7f0000001000 r-xp 00002000 08:01 1234   /lib/libx.so`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapsLine<'l> {
    /// First address.
    pub begin: u64,
    /// First address after the mapping.
    pub end: u64,
    /// `r`, `w`, `x` and `p`, or another character where something is not so.
    access: &'l [u8],
    /// Offset in the file.
    pub offset: u64,
    /// The file, or what else is mapped; may have any bytes, but newlines are escaped. Empty if it has no
    /// name.
    pub path: &'l [u8],
}

impl<'l> MapsLine<'l> {
    /// Parses a line; `None` if it is not one.
    pub fn parse(line: &'l [u8]) -> Option<Self> {
        let mut fields = line.splitn(6, |byte| *byte == b' ');
        let (range, access, offset) = (fields.next()?, fields.next()?, fields.next()?);
        let (_device, _inode) = (fields.next()?, fields.next()?);
        // Spaces precede it.
        let path = fields.next().unwrap_or_default().trim_ascii_start();
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (begin, end) = str::from_utf8(range).ok()?.split_once('-')?;
        let offset = number(str::from_utf8(offset).ok()?)?;
        Some(Self { begin: number(begin)?, end: number(end)?, access, offset, path })
    }

    /// Whether it can be executed.
    pub fn is_executable(&self) -> bool {
        self.access.get(2) == Some(&b'x')
    }
}

fn mapping(line: &[u8]) -> Option<Mapping> {
    let line = MapsLine::parse(line)?;
    let name = String::from_utf8_lossy(line.path);
    if !line.access.starts_with(b"r") || (name.starts_with("/dev/") && !name.starts_with("/dev/shm/")) {
        return None;
    }
    Some(Mapping {
        start: line.begin,
        size: line.end.checked_sub(line.begin)?,
        is_executable: line.is_executable(),
        is_private: line.access.get(3) == Some(&b'p'),
        is_begin: line.offset == 0,
        name: Some(name.replace("\\012", "\n")).filter(|name| !name.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let code =
            "7f00b000-7f00d000 r-xp 00001000 fd:01 2077                       /opt/a program (deleted)";
        let shared = "7f00b000-7f00d000 rw-s 00000000 00:01 2077 /memfd:tracewing (deleted)";
        let unnamed = "7f00b000-7f00d000 rw-p 00000000 00:00 0 ";
        let whole = Mapping { start: 0x7f00_b000, size: 0x2000, is_begin: true, ..Mapping::default() };
        let name = |name: &str| Some(name.to_owned());
        for (line, expected) in [
            (
                code,
                Mapping {
                    is_executable: true,
                    is_private: true,
                    is_begin: false,
                    name: name("/opt/a program (deleted)"),
                    ..whole.clone()
                },
            ),
            (shared, Mapping { name: name("/memfd:tracewing (deleted)"), ..whole.clone() }),
            (unnamed, Mapping { is_private: true, ..whole }),
        ] {
            assert_eq!(mapping(line.as_bytes()), Some(expected), "{line}");
        }
        for other in [
            "7f00b000-7f00d000 rw-s 00000000 00:05 99 /dev/dri/card0",
            "7f00b000-7f00d000 ---p 00000000 00:01 2077 /lib/libc.so",
            "7f00d000-7f00b000 rw-p 00000000 00:00 0",
            "nonsense",
            "",
        ] {
            assert_eq!(mapping(other.as_bytes()), None, "{other}");
        }
    }
}
