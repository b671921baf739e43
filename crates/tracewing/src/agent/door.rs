//! Words in which an agent's thread leaves what a recorder has to know of a door
//! (`tracewing_abi::message::door`).

use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicI32, AtomicI64, Ordering::*};
use std::time::{Duration, Instant};

use tracewing_abi::message::door::Door;
use tracewing_ring::thread::RECORDINGS;
use tracewing_units::Pid;

use super::access::Access;
use super::socket;
use super::system::{self, Fd, Identity};

/// One for each recorder that can attach at the same time.
static WORDS: [AtomicI64; RECORDINGS] = [const { AtomicI64::new(Door::Closed.word()) }; RECORDINGS];
/// Process ids of the recorders; 0: unknown.
static RECORDERS: [AtomicI32; RECORDINGS] = [const { AtomicI32::new(0) }; RECORDINGS];

/// A word, until its door is closed or could not be made. Nothing in it says anything about other memory.
pub(super) struct Word(&'static AtomicI64);

impl Word {
    /// One that is not in use; `None` if all are. The error in it, if there is one, has been read, or its
    /// recorder takes the new door for its own: of two that enter, one does so in vain.
    pub(super) fn take(recorder: i32) -> Option<Self> {
        let take = |(word, _): &(&AtomicI64, &AtomicI32)| {
            let before = word.load(Relaxed);
            let is_free = before <= Door::Closed.word();
            is_free && word.compare_exchange(before, Door::Opening.word(), Relaxed, Relaxed).is_ok()
        };
        let (word, recorders) = WORDS.iter().zip(&RECORDERS).find(take)?;
        recorders.store(recorder, Relaxed); // before its thread is started
        Some(Self(word))
    }

    pub(super) fn recorder(&self) -> Recorder {
        let at = WORDS.iter().position(|word| core::ptr::eq(word, self.0));
        Recorder::new(Pid(at.map_or(0, |at| RECORDERS[at].load(Relaxed))))
    }

    /// Where a recorder finds it.
    pub(super) fn address(&self) -> usize {
        core::ptr::from_ref(self.0).addr()
    }

    /// The word at an address that [`Word::address`] has given.
    pub(super) fn at(address: usize) -> Option<Self> {
        WORDS.iter().find(|word| core::ptr::from_ref(*word).addr() == address).map(Self)
    }

    pub(super) fn say(&self, door: Door) {
        self.0.store(door.word(), Relaxed);
    }
}

/// A recorder, of which it may be known whether it lives.
pub(super) struct Recorder(Option<Pid>);

impl Recorder {
    /// One that `/proc` does not show at first, since it is not there, or hides others' processes, may live.
    fn new(pid: Pid) -> Self {
        Self((pid.0 > 0 && system::is_process_alive(pid)).then_some(pid))
    }

    fn may_live(&self) -> bool {
        self.0.is_none_or(system::is_process_alive)
    }
}

/// An end of a door. The program may close it, and its number may then be another file's.
pub(super) struct End {
    file: ManuallyDrop<Fd>,
    identity: Identity,
}

impl End {
    /// Both ends of a new one; an error number if there can be none.
    pub(super) fn pair() -> Result<(Self, Self), i32> {
        let (own, recorders) = socket::socket_pair().ok_or(libc::EMFILE)?;
        let end = |file| Self::new(system::out_of_the_way(file)).ok_or(libc::EBADF);
        Ok((end(own)?, end(recorders)?))
    }

    fn new(file: Fd) -> Option<Self> {
        Some(Self { identity: system::identity(file.raw())?, file: ManuallyDrop::new(file) })
    }

    pub(super) fn raw(&self) -> i32 {
        self.file.raw()
    }

    /// Receives a packet, as long as its recorder may live, and no longer than this. Nothing if none comes.
    pub(super) fn receive(&self, buffer: &mut [u8], recorder: &Recorder, longest: Duration) -> usize {
        let begin = Instant::now();
        socket::wait_no_longer(&self.file, LOOK);
        loop {
            match socket::read_for_a_while(&self.file, buffer) {
                Some(len) => return len,
                None if begin.elapsed() >= longest || !recorder.may_live() || !self.is_itself() => return 0,
                None => {}
            }
        }
    }

    /// The way to the recorder by it; `None` if the program has closed it.
    pub(super) fn into_access(self) -> Option<Access> {
        self.is_itself().then(|| Access::door(self.raw(), self.identity)).inspect(|_| core::mem::forget(self))
    }

    fn is_itself(&self) -> bool {
        system::identity(self.raw()) == Some(self.identity)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if self.is_itself() {
            system::close(self.raw());
        }
    }
}

/// Time between two looks whether a recorder lives.
const LOOK: Duration = Duration::from_millis(100);

/// In a forked child: all doors are the parent's.
pub(super) fn forked() {
    WORDS.iter().for_each(|word| word.store(Door::Closed.word(), Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_open(number: i32) -> bool {
        system::identity(number).is_some()
    }

    /// A program that closes all its descriptors may get the same numbers for its own.
    #[test]
    fn descriptors_that_the_program_reuses_are_left_alone() {
        let (own, recorders) = End::pair().unwrap();
        let numbers = [own.raw(), recorders.raw()];
        for number in numbers {
            // SAFETY: a path, and numbers; nothing else uses the second one.
            unsafe {
                let file = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
                assert!(libc::dup2(file, number) == number && libc::close(file) == 0);
            }
        }
        drop(recorders);
        assert!(own.into_access().is_none());
        for number in numbers {
            assert!(is_open(number));
            system::close(number);
        }
        let (own, recorders) = End::pair().unwrap();
        let numbers = [own.raw(), recorders.raw()];
        drop(recorders);
        let access = own.into_access().unwrap();
        assert_eq!(numbers.map(is_open), [true, false]);
        access.close();
        assert!(!is_open(numbers[0]));
    }

    #[test]
    fn a_recorder_that_has_ended_is_not_waited_for() {
        let longest = Duration::from_secs(60);
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let recorder = Recorder::new(Pid::from_unsigned(child.id()));
        assert!(recorder.may_live());
        child.kill().unwrap();
        let (own, _recorders) = End::pair().unwrap();
        let begin = Instant::now();
        assert_eq!(own.receive(&mut [0], &recorder, longest), 0);
        assert!(begin.elapsed() < longest / 2);
        child.wait().unwrap();
        // It is not known of one that is not shown at all.
        assert!(Recorder::new(Pid::from_unsigned(child.id())).may_live() && Recorder::new(Pid(0)).may_live());
    }
}
