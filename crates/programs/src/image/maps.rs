//! The mappings of a process, as the kernel lists them in `/proc/PID/maps` (`man 5 proc_pid_maps`).

use super::memory::Mapping;

/// The readable mappings, by address. Device memory is left out, since reading it may have side effects.
pub(super) fn parse(maps: &[u8]) -> Vec<Mapping> {
    maps.split(|byte| *byte == b'\n').filter_map(mapping).collect()
}

fn mapping(line: &[u8]) -> Option<Mapping> {
    let line = String::from_utf8_lossy(line);
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let access = words.next()?;
    let offset = words.next()?;
    let name = words.nth(2).unwrap_or_default().trim_start();
    if !access.starts_with('r') || (name.starts_with("/dev/") && !name.starts_with("/dev/shm/")) {
        return None;
    }
    let start = u64::from_str_radix(start, 16).ok()?;
    Some(Mapping {
        start,
        size: u64::from_str_radix(end, 16).ok()?.checked_sub(start)?,
        is_executable: access.as_bytes().get(2) == Some(&b'x'),
        is_private: access.as_bytes().get(3) == Some(&b'p'),
        is_begin: u64::from_str_radix(offset, 16).ok()? == 0,
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
