//! A terminal that shows frames: it gets back what it had before, however the process ends, and while the
//! process is suspended.

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use signal_hook::consts::{SIGHUP, SIGTSTP};
use std::io::{IsTerminal, Write, stdin, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The alternate screen, without a cursor, and lines that are cut at its edge.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &[u8] = b"\x1b[?7h\x1b[?25h\x1b[?1049l";

/// What standard input was like before; also that the screen is taken.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);

struct Before {
    modes: Option<Termios>,
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Quit,
    Digit(u8),
    Up,
    Down,
    Left,
    Right,
    Redraw,
}

/// Size of the screen in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub rows: usize,
    pub columns: usize,
}

/// The terminal while it shows frames.
pub struct Live {
    has_keys: bool,
    suspends: Arc<AtomicBool>,
    hung_up: Arc<AtomicBool>,
    /// Of the last frame.
    size: Size,
    /// What was typed and is not used yet.
    typed: Vec<u8>,
}

impl Live {
    /// Takes the screen, and keys if standard input is the terminal.
    pub fn enter() -> Result<Self> {
        let (suspends, hung_up) = (Arc::default(), Arc::default());
        signal_hook::flag::register(SIGTSTP, Arc::clone(&suspends))?;
        signal_hook::flag::register(SIGHUP, Arc::clone(&hung_up))?;
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // What cannot be restored now cannot be later, either.
            let _ = restore();
            hook(info);
        }));
        let this =
            Self { has_keys: stdin().is_terminal(), suspends, hung_up, size: size(), typed: Vec::new() };
        this.take()?;
        Ok(this)
    }

    fn take(&self) -> Result<()> {
        let modes = self.has_keys.then(|| tcgetattr(stdin())).transpose()?;
        if let Some(before) = &modes {
            let mut modes = before.clone();
            // Ctrl-C and Ctrl-Z stay signals.
            modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            modes.special_codes[SpecialCodeIndex::VMIN] = 0;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
            tcsetattr(stdin(), OptionalActions::Now, &modes)?;
        }
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Before { modes });
        Ok(write(ENTER)?)
    }

    /// Whether keys reach it.
    pub fn has_keys(&self) -> bool {
        self.has_keys
    }

    /// Gives the terminal back.
    pub fn leave(&mut self) -> std::io::Result<()> {
        restore()
    }

    /// Size of the screen now.
    pub fn size(&mut self) -> Size {
        self.size = size();
        self.size
    }

    /// Whether the screen has another size than its last frame.
    pub fn is_other(&self) -> bool {
        self.size != size()
    }

    /// Shows lines, which end nowhere but at the edge.
    pub fn draw(&mut self, lines: &[Vec<u8>]) -> std::io::Result<()> {
        let mut frame = b"\x1b[H".to_vec();
        for (place, line) in lines.iter().enumerate() {
            if place > 0 {
                frame.extend(b"\r\n");
            }
            frame.extend(line);
            frame.extend(b"\x1b[K");
        }
        frame.extend(b"\x1b[J");
        write(&frame)
    }

    /// The next key, if one is pressed within a time.
    pub fn key(&mut self, within: Duration) -> Result<Option<Key>> {
        // Nothing else is published with these.
        if self.hung_up.load(Ordering::Relaxed) {
            return Ok(Some(Key::Quit));
        }
        if self.suspends.swap(false, Ordering::Relaxed) {
            return self.suspend().map(Some);
        }
        if let Some(key) = self.typed_key() {
            return Ok(Some(key));
        }
        if !self.has_keys {
            std::thread::sleep(within);
            return Ok(None);
        }
        let input = stdin();
        let mut polled = [PollFd::new(&input, PollFlags::IN)];
        let time = Timespec::try_from(within)?;
        match poll(&mut polled, Some(&time)) {
            Ok(0) | Err(Errno::INTR) => Ok(None),
            Ok(_) => {
                let mut bytes = [0; 16];
                let count = rustix::io::read(&input, &mut bytes)?;
                // A terminal that is gone has no more keys.
                self.typed.extend(&bytes[..count]);
                Ok(if count == 0 { Some(Key::Quit) } else { self.typed_key() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The first key of those that were typed; others than those that mean something are left out.
    fn typed_key(&mut self) -> Option<Key> {
        while !self.typed.is_empty() {
            let (key, length) = key_of(&self.typed);
            self.typed.drain(..length);
            if key.is_some() {
                return key;
            }
        }
        None
    }

    /// Stops the process as Ctrl-Z does, with the terminal as it was before, until the shell continues it.
    fn suspend(&mut self) -> Result<Key> {
        restore()?;
        signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
        self.take()?;
        Ok(Key::Redraw)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = restore();
        drop(std::panic::take_hook());
    }
}

/// Gives the terminal back, once.
fn restore() -> std::io::Result<()> {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Before { modes }) = before else { return Ok(()) };
    let written = write(LEAVE);
    if let Some(modes) = modes {
        tcsetattr(stdin(), OptionalActions::Now, &modes)?;
    }
    written
}

fn write(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

fn size() -> Size {
    let size = tcgetwinsize(stdout()).map_or((0, 0), |size| (size.ws_row, size.ws_col));
    let or = |number: u16, default| if number == 0 { default } else { number.into() };
    Size { rows: or(size.0, 24), columns: or(size.1, 80) }
}

/// What the first key of these bytes means, if anything, and how many bytes it has.
fn key_of(bytes: &[u8]) -> (Option<Key>, usize) {
    match bytes {
        [b'q' | b'Q', ..] => (Some(Key::Quit), 1),
        [digit @ b'0'..=b'9', ..] => (Some(Key::Digit(digit - b'0')), 1),
        [0x1b, b'[' | b'O', b'A', ..] => (Some(Key::Up), 3),
        [0x1b, b'[' | b'O', b'B', ..] => (Some(Key::Down), 3),
        [0x1b, b'[' | b'O', b'C', ..] => (Some(Key::Right), 3),
        [0x1b, b'[' | b'O', b'D', ..] => (Some(Key::Left), 3),
        // Another sequence, up to its letter.
        [0x1b, b'[' | b'O', rest @ ..] => {
            let end = rest.iter().position(|byte| (0x40..0x7f).contains(byte));
            (None, end.map_or(bytes.len(), |end| end + 3))
        }
        // Ctrl-L.
        [0x0c, ..] => (Some(Key::Redraw), 1),
        _ => (None, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_distinguished() {
        for (bytes, key) in [
            (&b"q1"[..], (Some(Key::Quit), 1)),
            (b"42", (Some(Key::Digit(4)), 1)),
            (b"\x1b[Dq", (Some(Key::Left), 3)),
            (b"\x1bOA", (Some(Key::Up), 3)),
            (b"\x1b[15~q", (None, 5)),
            (b"\x1b[1", (None, 3)),
            (b"\x1bq", (None, 1)),
            (b"x", (None, 1)),
        ] {
            assert_eq!(key_of(bytes), key, "{bytes:?}");
        }
    }
}
