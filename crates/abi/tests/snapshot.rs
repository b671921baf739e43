//! Questions to a recorder and their answers: what one side encodes the other decodes to the same; what is
//! cut or garbled gives an error, never a panic.

use proptest::prelude::*;
use tracewing_abi::message::snapshot::{
    Asker, Commands, Figures, KernelBuffers, LARGEST_ANSWER, LONGEST_TEXT, LeftOut, Question, Removed,
    Status, Taken,
};
use tracewing_abi::message::{Hello, Joining, MAX_MESSAGE};

const _: () = assert!(LARGEST_ANSWER <= MAX_MESSAGE);

const QUESTIONS: [Question; 6] = [
    Question::Status,
    Question::Snapshot(Asker::Program),
    Question::Snapshot(Asker::Panic),
    Question::Snapshot(Asker::Command),
    Question::Rotate,
    Question::Clear,
];

#[test]
fn questions_come_back_and_are_no_hello() {
    for question in QUESTIONS {
        let bytes = question.encode();
        assert!(Question::is_one(&bytes));
        assert_eq!(Question::decode(&bytes), Ok(question));
        assert!(Hello::decode(&bytes).is_err());
    }
    let hello =
        Hello { version: 1, pid: 2, can_publish: true, joining: Joining::Program, copy: 3, waits: [0; 2] }
            .encode();
    assert!(!Question::is_one(&hello));
}

#[test]
fn long_texts_are_cut_between_characters() {
    let long = "ö".repeat(LONGEST_TEXT);
    let mut buffer = [0; LARGEST_ANSWER];
    let len = Taken::Failed(&long).encode(&mut buffer).unwrap();
    assert_eq!(Taken::decode(&buffer[..len]), Ok(Taken::Failed(&long[..LONGEST_TEXT])));
    let status = Status {
        pid: 1,
        command_pid: 2,
        processes: [3; Status::PROCESSES],
        is_flight_recorder: true,
        is_trigger: false,
        figures: Figures::default(),
        name: &long,
        command: &long,
        output: &long,
    };
    assert_eq!(status.encode(&mut buffer), Ok(145 + 4 * Status::PROCESSES + 3 * LONGEST_TEXT));
}

proptest! {
    #[test]
    fn answers_come_back(pid: u32, command_pid: u32, flight: bool, command: String, text: String, n: u64) {
        let mut buffer = [0; LARGEST_ANSWER];
        let (command, output) = (command.as_str(), text.as_str());
        let processes = [pid; Status::PROCESSES];
        let figures = Figures {
            elapsed: n,
            events: !n,
            lost: n / 3,
            is_lost_unknown: flight,
            bytes: n / 7,
            removed: Removed { count: n / 5, events: !n / 5, bytes: n / 11 },
            commands: flight.then_some(Commands { run: n, failed: n / 2, skipped: !n, waiting: n / 13 }),
            snapshots: pid,
            programs: command_pid,
            fullest: n as u8,
            is_paused: !flight,
            kernel: KernelBuffers { sub_buffers: pid, sub_buffer_bytes: !pid, overwrites: flight },
            left_out: LeftOut { notes: n / 13, programs: !n / 13 },
        };
        let name = &text[..text.floor_char_boundary(9)];
        let is_flight_recorder = flight;
        let status = Status {
            pid,
            command_pid,
            processes,
            is_flight_recorder,
            is_trigger: !flight,
            figures,
            name,
            command,
            output,
        };
        let len = status.encode(&mut buffer).unwrap();
        prop_assert_eq!(Status::decode(&buffer[..len]), Ok(status));
        for taken in
            [Taken::Folder(output), Taken::NotFlightRecorder, Taken::NotWanted, Taken::Failed(output)]
        {
            let len = taken.encode(&mut buffer).unwrap();
            prop_assert_eq!(Taken::decode(&buffer[..len]), Ok(taken));
            prop_assert!(Taken::decode(&buffer[..len - 1]).is_err());
        }
    }

    #[test]
    fn garbage_is_an_error(bytes: Vec<u8>, flip in 0..64_usize) {
        let _ = (Question::decode(&bytes), Status::decode(&bytes), Taken::decode(&bytes));
        let mut buffer = [0; LARGEST_ANSWER];
        let len = Taken::Folder("trace/snapshot-1").encode(&mut buffer).unwrap();
        buffer[flip % len] ^= 1 << (flip % 8);
        let _ = Taken::decode(&buffer[..len]);
    }
}
