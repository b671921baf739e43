//! The file with what the recorder of a channel or trigger says, and what the programs print that it runs:
//! its standard error. It is kept small, since a recorder may run for months and a trigger may fire all the
//! time: if it becomes too large, its oldest lines go.
//!
//! The file stays the same one, since others have it open, too: programs that run, and the process that
//! starts them. All write at the same place of it, which moves with what is cut off. What one of them writes
//! during the cut may be lost.

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{FileType, SeekFrom, fstat, ftruncate, seek};
use rustix::io::{pread, pwrite, write};
use std::io;

/// Largest size, bytes, and what is kept of it.
const MOST: u64 = 1 << 20;
const KEPT: u64 = 256 << 10;

/// Cuts off the oldest lines of standard error if it is a file that is too large, and that can be read.
pub fn shorten() {
    // What cannot be cut off stays.
    let _ = shorten_file(io::stderr().as_fd(), MOST, KEPT);
}

/// Ends the last line of standard error, if it is a file that can be read: what a program prints may have no
/// line break at its end.
pub fn end_line() {
    let _ = end_line_of(io::stderr().as_fd());
}

fn shorten_file(file: BorrowedFd<'_>, most: u64, kept: u64) -> io::Result<()> {
    let size = size(file)?;
    if size <= most {
        return Ok(());
    }
    let begin = size.saturating_sub(kept);
    let rest = read(file, begin, (size - begin) as usize)?;
    // The first line has no begin.
    let line = rest.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let gone = begin + line as u64;
    let mut text = format!("tracewing: {gone} bytes of earlier lines were removed\n").into_bytes();
    text.extend_from_slice(&rest[line..]);
    // The old end goes last: until then, nothing is lost if the disk is full or this process is killed. What
    // is written in between is cut off, and leaves no hole that is larger than itself.
    write_at(file, 0, &text)?;
    seek(file, SeekFrom::Start(text.len() as u64))?;
    Ok(ftruncate(file, text.len() as u64)?)
}

fn end_line_of(file: BorrowedFd<'_>) -> io::Result<()> {
    let Some(last) = size(file)?.checked_sub(1) else { return Ok(()) };
    if read(file, last, 1)? != b"\n" {
        write(file, b"\n")?;
    }
    Ok(())
}

/// Bytes of a file; of anything else, 0.
fn size(file: BorrowedFd<'_>) -> io::Result<u64> {
    let data = fstat(file)?;
    let is_file = FileType::from_raw_mode(data.st_mode).is_file();
    Ok(if is_file { u64::try_from(data.st_size).unwrap_or(0) } else { 0 })
}

fn read(file: BorrowedFd<'_>, begin: u64, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; size];
    let mut done = 0;
    while done < size {
        match pread(file, &mut bytes[done..], begin + done as u64)? {
            0 => break,
            more => done += more,
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

fn write_at(file: BorrowedFd<'_>, mut at: u64, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let done = pwrite(file, bytes, at)?;
        bytes = &bytes[done..];
        at += done as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};

    #[test]
    fn the_last_lines_stay_and_what_comes_later_follows_them() {
        let mut file = tempfile::tempfile().unwrap();
        // A program that runs writes to the same open file.
        let mut other = file.try_clone().unwrap();
        let mut text = || {
            let at = file.stream_position().unwrap();
            file.rewind().unwrap();
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            file.seek(std::io::SeekFrom::Start(at)).unwrap();
            text
        };
        (0..10).for_each(|line| writeln!(other, "line {line}").unwrap());
        shorten_file(other.as_fd(), 70, 20).unwrap();
        assert_eq!(text().lines().count(), 10, "it is small");
        writeln!(other, "line 10").unwrap();
        shorten_file(other.as_fd(), 70, 20).unwrap();
        writeln!(other, "line 11").unwrap();
        let expected = "tracewing: 63 bytes of earlier lines were removed\nline 9\nline 10\nline 11\n";
        assert_eq!(text(), expected);
    }

    /// As on a disk that is full.
    #[test]
    fn nothing_is_lost_if_it_cannot_be_written() {
        use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
        let file = memfd_create(c"log", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        let text = "line\n".repeat(100);
        write_at(file.as_fd(), 0, text.as_bytes()).unwrap();
        seek(&file, SeekFrom::End(0)).unwrap();
        // It can be truncated all the same.
        fcntl_add_seals(&file, SealFlags::WRITE).unwrap();
        assert!(shorten_file(file.as_fd(), 100, 20).is_err());
        assert_eq!(read(file.as_fd(), 0, 1000).unwrap(), text.as_bytes());
        assert_eq!(seek(&file, SeekFrom::Current(0)).unwrap(), 500);
    }

    #[test]
    fn a_line_without_an_end_gets_one() {
        let mut file = tempfile::tempfile().unwrap();
        for (written, expected) in [("", ""), ("a\n", "a\n"), ("b", "a\nb\n"), ("c\n", "a\nb\nc\n")] {
            file.write_all(written.as_bytes()).unwrap();
            end_line_of(file.as_fd()).unwrap();
            assert_eq!(read(file.as_fd(), 0, 100).unwrap(), expected.as_bytes());
        }
    }
}
