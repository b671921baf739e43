//! Hand-made filters: where jumps may lead, and what happens to missing values.

use tracewing_abi::atomic::AtomicU64;
use tracewing_abi::schema::Scalar;
use tracewing_rules::filter::{
    ACCEPT, Context, EQUAL, GREATER, Instruction, LESS, Load, Operation, REJECT, evaluate,
};
use tracewing_units::{Cpu, Pid, Tid};

const ANY: u8 = LESS | EQUAL | GREATER;

fn instruction(accepted: u8) -> Instruction {
    Instruction {
        operation: Operation::Integer,
        load: Load::scalar(Scalar::U8),
        base: 0,
        orders: ANY,
        accepted,
        rejected: ACCEPT,
        extra: 1,
        offset: 0,
    }
}

fn run(words: &[u64], payload: &[u8]) -> bool {
    let program: Vec<AtomicU64> = words.iter().map(|word| AtomicU64::new(*word)).collect();
    evaluate(&program, std::iter::once(payload), &Context { tid: Tid(0), pid: Pid(0), cpu: Cpu(0) })
}

#[test]
fn no_words_accept_and_words_of_zeros_do_not() {
    assert!(run(&[], &[]));
    assert!(!run(&[0], &[1]) && !run(&[0; 128], &[1]));
}

#[test]
fn jumps_lead_forward_only() {
    assert!(run(&[instruction(ACCEPT).encode(), 0], &[1]));
    assert!(!run(&[instruction(REJECT).encode(), 0], &[1]));
    assert!(!run(&[instruction(0).encode(), 0], &[1]), "to itself");
    assert!(!run(&[instruction(2).encode(), 0, instruction(0).encode(), 0], &[1]), "back");
    assert!(run(&[instruction(2).encode(), 0, instruction(ACCEPT).encode(), 0], &[1]), "forward");
    assert!(!run(&[instruction(9).encode(), 0], &[1]), "after the end");
    let mut long = vec![0; 400];
    long[0] = instruction(200).encode();
    long[200] = instruction(ACCEPT).encode();
    assert!(run(&long, &[1]), "more words than a filter may have are no danger");
}

#[test]
fn what_lies_outside_rejects() {
    assert!(!run(&[instruction(ACCEPT).encode()], &[1]), "the operand");
    assert!(!run(&[instruction(ACCEPT).encode(), 0], &[]), "the value");
    let outside = Instruction { offset: 1, ..instruction(ACCEPT) };
    assert!(!run(&[outside.encode(), 0], &[1]) && run(&[outside.encode(), 0], &[1, 2]));
    for number in 21..240 {
        let unknown = Instruction { load: Load(number), ..instruction(ACCEPT) };
        assert!(!run(&[unknown.encode(), 0], &[1]), "load {number}");
    }
}

#[test]
fn a_register_that_was_never_set_is_the_begin() {
    let based = Instruction { base: 3, ..instruction(ACCEPT) };
    assert!(run(&[based.encode(), 0], &[1]));
    let locate = Instruction {
        operation: Operation::Locate,
        load: Load::TEXT,
        orders: 0,
        extra: 3,
        ..instruction(ACCEPT)
    };
    let equal = Instruction { orders: EQUAL, rejected: REJECT, ..based };
    assert!(run(&[locate.encode(), equal.encode(), 7], b"text\0\x07"));
    assert!(!run(&[locate.encode(), equal.encode(), 7], b"text\x07"), "no NUL");
    let nowhere = Instruction { extra: 0, ..locate };
    assert!(!run(&[nowhere.encode(), instruction(ACCEPT).encode(), 0], b"text\0"), "register 0 stays 0");
}
