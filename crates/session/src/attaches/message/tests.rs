//! The messages: what is written is read, and nonsense is refused.

use super::*;
use proptest::prelude::*;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tracewing_helper::{MOST_BYTES, MOST_FILES};

const PID: Pid = Pid(7);

fn door() -> OwnedFd {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap().0
}

fn time(ns: i64) -> Timestamp {
    Timestamp::from_ns(ns)
}

fn entry_of(object: &str) -> Entry {
    let (loaded, word, range) = (Some(time(i64::MAX)), Some((u64::MAX, 7)), 0x1000..u64::MAX);
    Entry { address: 0x1100, loaded, word, number: usize::MAX, object: object.to_owned(), range }
}

fn entered(object: &str) -> Entered {
    Entered { door: door(), filters: 3, entry: entry_of(object), age: Some(Duration::from_nanos(u64::MAX)) }
}

fn outcomes() -> Vec<Outcome> {
    let declined = [Declined::Alone, Declined::NoThread, Declined::NoDoor].into_iter().map(Some);
    let system = Some(Declined::System(std::io::Error::from_raw_os_error(libc::EMFILE)));
    let answers = declined.chain([None, system]).map(|declined| {
        let entry = Entry { loaded: None, word: None, ..entry_of("") };
        let other = Entered { door: door(), filters: 0, entry, age: None };
        Ok(Answers { entered: vec![entered("/lib/a.so"), other], declined })
    });
    let refusals = [Refusal::Gone(PID), Refusal::Filtered { pid: PID, call: "mmap" }, Refusal::Late(PID)];
    let no_process = Unread::NoProcess(std::io::Error::from_raw_os_error(libc::EAGAIN));
    let unread = [Unread::Nothing, no_process, Unread::Failed, Unread::Late].map(NotAttached::Unread);
    let failed = refusals.map(NotAttached::Refused).into_iter().chain(unread).chain([NotAttached::NoHelper]);
    let tried = vec![Loaded { address: 5, at: None }, Loaded { address: 6, at: Some(time(-1)) }];
    answers
        .chain(failed.map(Err))
        .zip([None, Some(Duration::from_micros(3))].into_iter().cycle())
        .map(|(result, longest_stop)| Outcome { result, longest_stop, tried: tried.clone() })
        .collect()
}

/// All of it but the numbers of descriptors, which change.
fn shown(outcome: &Outcome) -> String {
    let text = format!("{outcome:?}");
    let parts = text.split("OwnedFd { fd: ");
    parts.map(|part| part.trim_start_matches(|digit: char| digit.is_ascii_digit())).collect()
}

#[test]
fn requests_are_read_as_they_were_written() {
    let tried = [Loaded { address: 1, at: None }, Loaded { address: 2, at: Some(time(5)) }];
    let new = Wanted::New { members: vec![u64::MAX, 3], tried: tried.into() };
    for wanted in [Wanted::Present, new, Wanted::New { members: Vec::new(), tried: BTreeSet::new() }] {
        let patience = Duration::from_millis(50);
        let request = Request::Attach { pid: PID, wanted, recording: [9; 16], patience };
        let bytes = request.encode();
        assert_eq!(Request::decode(&bytes), Some(request));
        assert!((0..bytes.len()).all(|len| Request::decode(&bytes[..len]).is_none()));
        assert_eq!(Request::decode(&[&bytes[..], &[0]].concat()), None);
    }
    assert_eq!(Request::decode(&Request::Begin.encode()), Some(Request::Begin));
}

#[test]
fn the_largest_messages_fit_into_packets() {
    let tried: BTreeSet<_> =
        (0..5000).map(|at| Loaded { address: 5000 - at, at: Some(time(at as i64)) }).collect();
    let wanted = Wanted::New { members: (0..5000).collect(), tried };
    let request = Request::Attach { pid: PID, wanted, recording: [9; 16], patience: Duration::ZERO };
    let bytes = request.encode();
    assert!(bytes.len() <= MOST_BYTES, "{}", bytes.len());
    let Some(Request::Attach { wanted: Wanted::New { members, tried }, .. }) = Request::decode(&bytes) else {
        panic!("a request")
    };
    assert_eq!((members.len(), tried.len()), (MOST_MEMBERS, MOST_TRIED));
    assert!(tried.iter().all(|one| one.at >= Some(time(5000 - MOST_TRIED as i64))), "the latest ones");

    let long = "é".repeat(4000);
    let entered = (0..MOST_COPIES).map(|_| entered(&long)).collect();
    let tried = vec![Loaded { address: 1, at: None }; 100];
    let outcome = Outcome { result: Ok(Answers { entered, declined: None }), longest_stop: None, tried };
    let (bytes, doors) = encode_outcome(outcome);
    assert!(bytes.len() <= MOST_BYTES && doors.len() <= MOST_FILES, "{} {}", bytes.len(), doors.len());
    let answers = decode_outcome(&bytes, doors, PID).unwrap().result.unwrap();
    assert!(answers.entered.iter().all(|one| long.ends_with(&one.entry.object[..])));
    assert_eq!(answers.entered.len(), MOST_COPIES);
}

#[test]
fn outcomes_are_read_as_they_were_written() {
    for outcome in outcomes() {
        let text = shown(&outcome);
        let (bytes, doors) = encode_outcome(outcome);
        let count = doors.len();
        assert_eq!(decode_outcome(&bytes, doors, PID).map(|outcome| shown(&outcome)), Some(text));
        let doors = |count| (0..count).map(|_| door()).collect::<Vec<_>>();
        for len in 0..bytes.len() {
            assert!(decode_outcome(&bytes[..len], doors(count), PID).is_none(), "{len} of {bytes:?}");
        }
        assert!(decode_outcome(&bytes, doors(count + 1), PID).is_none());
        assert!(count == 0 || decode_outcome(&bytes, doors(count - 1), PID).is_none());
    }
}

proptest! {
    #[test]
    fn nonsense_is_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..100), at in 0_usize..200) {
        // A valid one with other bytes in its midst reaches further than random ones.
        let new = Wanted::New { members: vec![1, 2], tried: [Loaded { address: 3, at: None }].into() };
        let request = Request::Attach { pid: PID, wanted: new, recording: [9; 16], patience: Duration::ZERO };
        let outcome = Outcome {
            result: Ok(Answers { entered: vec![entered("/lib/a.so")], declined: None }),
            longest_stop: None,
            tried: Vec::new(),
        };
        for valid in [request.encode(), encode_outcome(outcome).0, Vec::new()] {
            let mixed: Vec<u8> = valid.iter().take(at).chain(&bytes).copied().collect();
            if let Some(request @ Request::Attach { .. }) = Request::decode(&mixed) {
                prop_assert_eq!(Request::decode(&request.encode()), Some(request));
            }
            if let Some(outcome) = decode_outcome(&mixed, vec![door()], PID) {
                let text = shown(&outcome);
                let (bytes, doors) = encode_outcome(outcome);
                prop_assert_eq!(decode_outcome(&bytes, doors, PID).map(|one| shown(&one)), Some(text));
            }
        }
    }
}
