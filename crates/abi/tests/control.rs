//! Changes of a running recording and their answers: what one side encodes the other decodes to the same;
//! what is cut or garbled gives an error, never a panic.

use proptest::prelude::*;
use tracewing_abi::message::control::{Answer, AnswerWriter, Control, Effect, Item, decode_answer};
use tracewing_abi::message::grant::{decode_change, decode_grants};
use tracewing_abi::message::join::Join;
use tracewing_abi::message::snapshot::{LONGEST_TEXT, Question};
use tracewing_abi::message::{Hello, MAX_MESSAGE};

fn effect(programs: u32, majors: u64, is_paused: bool) -> Effect {
    Effect { programs, classes: 7, majors, is_paused, unanswered: 2, unreachable: 3 }
}

#[test]
fn what_does_not_fit_leaves_the_answer_as_it_was() {
    let mut buffer = [0; 38];
    let answer = Answer::Changed(effect(1, u64::MAX, false));
    let mut writer = AnswerWriter::new(&mut buffer, &answer).unwrap();
    assert!(writer.push(Item::Note("far too long for what is left")).is_err());
    writer.push(Item::Rule("ab")).unwrap_err();
    let len = writer.finish();
    let (decoded, mut items) = decode_answer(&buffer[..len]).unwrap();
    assert_eq!((decoded, items.next()), (answer, None));
    assert!(Control::Rule(&[0; 20]).encode(&mut [0; 20]).is_err());
}

#[test]
fn no_invitation_leads_to_a_place_without_a_listener() {
    let long = [b'/'; Join::LONGEST_PATH + 1];
    assert!(Join { path: &long }.encode(&mut [0; 200]).is_err());
    let mut message = [0; 200];
    let len = Join { path: &long[1..] }.encode(&mut message).unwrap().len();
    message[4] += 1;
    assert!(Join::decode(&message[..len + 1]).is_err());
}

#[test]
fn long_texts_are_cut_between_characters() {
    let long = "ö".repeat(LONGEST_TEXT);
    let mut buffer = vec![0; MAX_MESSAGE];
    let len = AnswerWriter::new(&mut buffer, &Answer::Refused(&long)).unwrap().finish();
    assert_eq!(decode_answer(&buffer[..len]).unwrap().0, Answer::Refused(&long[..LONGEST_TEXT]));
}

proptest! {
    #[test]
    fn changes_come_back_and_are_no_other_message(rule: Vec<u8>, on: bool, majors: u64) {
        let mut buffer = vec![0; Control::HEADER + rule.len()];
        for control in [
            Control::Show,
            Control::Rule(&rule),
            Control::Majors { on, majors },
            Control::Pause,
            Control::Resume,
            Control::Invite(&rule),
        ] {
            let len = control.encode(&mut buffer).unwrap();
            let bytes = &buffer[..len];
            prop_assert!(Control::is_one(bytes) && !Question::is_one(bytes) && Hello::decode(bytes).is_err());
            prop_assert_eq!(Control::decode(bytes), Ok(control));
            prop_assert!(Control::decode(&bytes[..len - 1]).is_err());
            prop_assert!(Control::decode(&[bytes, &[0]].concat()).is_err());
        }
    }

    #[test]
    fn invitations_come_back(path in proptest::collection::vec(any::<u8>(), 0..=Join::LONGEST_PATH), more: u8) {
        let mut buffer = [0; Join::LARGEST];
        let bytes = Join { path: &path }.encode(&mut buffer).unwrap();
        prop_assert_eq!(Join::decode(bytes), Ok(Join { path: &path }));
        prop_assert!(Join::decode(&bytes[..bytes.len() - 1]).is_err());
        prop_assert!(Join::decode(&[bytes, &[more]].concat()).is_err());
        prop_assert!(decode_change(bytes).is_err() && decode_grants(bytes).is_err());
    }

    #[test]
    fn answers_come_back(programs: u32, majors: u64, paused: bool, pid: u32, text in ".{0,100}") {
        let mut buffer = vec![0; MAX_MESSAGE];
        let answer = Answer::Changed(effect(programs, majors, paused));
        let items =
            [Item::Rule(&text), Item::Note(&text), Item::Failure(&text), Item::Unanswered(pid, &text), Item::Unreachable(pid, &text)];
        let mut writer = AnswerWriter::new(&mut buffer, &answer).unwrap();
        for item in items {
            writer.push(item).unwrap();
        }
        let len = writer.finish();
        let (decoded, found) = decode_answer(&buffer[..len]).unwrap();
        prop_assert_eq!(decoded, answer);
        prop_assert!(found.eq(items));
        prop_assert_eq!(decode_answer(&buffer[..len - 1]).unwrap().1.count(), items.len() - 1);
    }

    #[test]
    fn garbage_is_an_error(bytes: Vec<u8>, flip in 0..64_usize) {
        let _ = (Control::decode(&bytes), Join::decode(&bytes));
        let _ = decode_answer(&bytes).map(|(_, items)| items.count());
        let mut buffer = [0; 100];
        let len = Control::Rule(b"some rule").encode(&mut buffer).unwrap();
        buffer[flip % len] ^= 1 << (flip % 8);
        let _ = Control::decode(&buffer[..len]);
        let mut writer = AnswerWriter::new(&mut buffer, &Answer::Refused("why")).unwrap();
        writer.push(Item::Unanswered(7, "name")).unwrap();
        let len = writer.finish();
        buffer[flip % len] ^= 1 << (flip % 8);
        let _ = decode_answer(&buffer[..len]).map(|(_, items)| items.count());
    }
}
