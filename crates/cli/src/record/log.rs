//! The file with what the recorder of a channel or trigger says, and what the programs print that it runs:
//! its standard error. It is kept small, since a recorder may run for months and a trigger may fire all the
//! time: if it becomes too large, its oldest lines go.
//!
//! The file stays the same one, since others have it open, too: programs that run, and the process that
//! starts them. All write at the same place of it, which moves with what is cut off. What one of them writes
//! during the cut may be lost.

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{FileType, SeekFrom, fstat, ftruncate, seek};
use rustix::io::{pread, write};
use std::io;

/// Largest size, bytes, and what is kept of it.
const MOST: u64 = 1 << 20;
const KEPT: u64 = 256 << 10;

/// The file of this process's standard error.
#[derive(Default)]
pub struct Log(());

impl Log {
    /// Cuts off its oldest lines if it is too large, and a file that can be read.
    pub fn shorten(&self) {
        // What cannot be cut off stays.
        let _ = shorten(io::stderr().as_fd(), MOST, KEPT);
    }
}

fn shorten(file: BorrowedFd<'_>, most: u64, kept: u64) -> io::Result<()> {
    let data = fstat(file)?;
    let size = u64::try_from(data.st_size).unwrap_or(0);
    if !FileType::from_raw_mode(data.st_mode).is_file() || size <= most {
        return Ok(());
    }
    let begin = size.saturating_sub(kept);
    let rest = read(file, begin, (size - begin) as usize)?;
    // The first line has no begin.
    let line = rest.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let gone = begin + line as u64;
    let said = format!("tracewing: {gone} bytes of earlier lines were removed\n");
    seek(file, SeekFrom::Start(0))?;
    ftruncate(file, 0)?;
    write_all(file, said.as_bytes())?;
    write_all(file, &rest[line..])
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

fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let done = write(file, bytes)?;
        bytes = &bytes[done..];
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
        shorten(other.as_fd(), 70, 20).unwrap();
        assert_eq!(text().lines().count(), 10, "it is small");
        writeln!(other, "line 10").unwrap();
        shorten(other.as_fd(), 70, 20).unwrap();
        writeln!(other, "line 11").unwrap();
        let expected = "tracewing: 63 bytes of earlier lines were removed\nline 9\nline 10\nline 11\n";
        assert_eq!(text(), expected);
    }

    #[test]
    fn what_is_no_file_stays_as_it_is() {
        let (reader, writer) = std::io::pipe().unwrap();
        shorten(writer.as_fd(), 0, 0).unwrap();
        drop(reader);
    }
}
