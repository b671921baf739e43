//! A recorder of the program `pilot`, whose threads emit numbered events, one thread on each CPU, when they
//! are ordered to.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub struct Pilot {
    pub folder: tempfile::TempDir,
    pub recorder: Child,
    pub orders: Option<ChildStdin>,
    pub answers: BufReader<ChildStdout>,
}

impl Pilot {
    /// Starts a recorder that has the program as its command.
    pub fn start(folder: tempfile::TempDir, recorder: &mut Command) -> Self {
        let mut recorder = recorder.stdin(Stdio::piped()).spawn().unwrap();
        let (orders, answers) = (recorder.stdin.take(), recorder.stdout.take().unwrap());
        Self { folder, recorder, orders, answers: BufReader::new(answers) }
    }

    pub fn order(&mut self, order: &str) -> String {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
        self.answer()
    }

    /// The next line that it prints.
    pub fn answer(&mut self) -> String {
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    /// The numbers that every thread has emitted.
    pub fn numbers(&mut self, order: &str) -> Vec<u64> {
        self.order(order).split(' ').map(|number| number.parse().unwrap()).collect()
    }
}
