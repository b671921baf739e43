//! Samples as stacks of code, before functions have names.

use std::collections::HashMap;

use super::function::{Frames, Function, FunctionKind};
use tracewing_trace::Losses;
use tracewing_units::{Duration, Pid, Tid, Timestamp};

/// A file that was mapped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Image {
    /// Its path, or what the kernel calls it, as in `[vdso]`.
    pub path: String,
    /// Its build id, hexadecimal; empty where it is not known.
    pub build_id: String,
}

/// Where the code at a sampled address comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Code {
    /// `offset` bytes into the file of a mapping, which `image` numbers.
    File { image: u32, offset: u64 },
    /// In the kernel; without a name if no event reports it.
    Kernel { function: Option<u32> },
    /// Compiled at run time, as the process has named it.
    Jit { function: u32 },
    /// In no known file.
    Unknown,
}

/// Code by small numbers.
#[derive(Debug, Default)]
pub(super) struct Codes {
    pub(super) images: Vec<Image>,
    /// Names of the kernel's functions.
    pub(super) kernel: Vec<String>,
    /// Names of functions that were compiled at run time.
    pub(super) jit: Vec<String>,
    codes: Vec<Code>,
    numbers: HashMap<Code, u32>,
}

impl Codes {
    /// Those of files, of functions of the kernel and of functions that were compiled at run time, none of
    /// which was asked for.
    pub(super) fn of(images: Vec<Image>, kernel: Vec<String>, jit: Vec<String>) -> Self {
        Self { images, kernel, jit, codes: Vec::new(), numbers: HashMap::new() }
    }

    pub(super) fn number(&mut self, code: Code) -> u32 {
        *self.numbers.entry(code).or_insert_with(|| {
            self.codes.push(code);
            self.codes.len() as u32 - 1
        })
    }

    /// The functions with the code, by its numbers, the innermost first; `frames` is asked for those at an
    /// offset of a file.
    pub(super) fn functions(&self, frames: &mut dyn FnMut(&Image, u64) -> Frames) -> Vec<Vec<Function>> {
        let functions = |code: &Code| match code {
            Code::File { image, offset } => {
                let image = &self.images[*image as usize];
                let Frames { inlined, name, near } = frames(image, *offset);
                let of = |name, kind| Function { name: Some(name), object: image.path.clone(), kind };
                let whole = match (name, near) {
                    (None, Some(near)) => of(near, FunctionKind::Near),
                    (name, _) => Function::whole(name, &image.path),
                };
                let inlined = inlined.into_iter().map(|name| of(name, FunctionKind::Inlined));
                inlined.chain([whole]).collect()
            }
            Code::Kernel { function } => {
                let name = function.map(|function| self.kernel[function as usize].clone());
                vec![Function::whole(name, Function::KERNEL)]
            }
            Code::Jit { function } => {
                vec![Function::whole(Some(self.jit[*function as usize].clone()), Function::JIT)]
            }
            Code::Unknown => vec![Function::whole(None, Function::UNKNOWN)],
        };
        self.codes.iter().map(functions).collect()
    }

    pub(super) fn code(&self, number: u32) -> Code {
        self.codes[number as usize]
    }
}

/// Whose samples, and where they were taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Stack {
    pub(super) process: Option<Pid>,
    pub(super) tid: Option<Tid>,
    /// The innermost first: the kernel's, then the program's.
    pub(super) codes: Vec<u32>,
    /// Where the program's part begins.
    pub(super) user_from: usize,
}

/// A number of samples, and the sum of their periods (ns or cycles).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Weight {
    pub(super) samples: u64,
    pub(super) period: u64,
}

/// The result of [`Profile`](super::Profile): samples by stack, before their code has names.
#[derive(Debug)]
pub struct Samples {
    pub(super) stacks: HashMap<Stack, Weight>,
    /// When those of each stack were taken, if that was asked for.
    pub(super) times: HashMap<Stack, Vec<Timestamp>>,
    pub(super) codes: Codes,
    /// The last program that each process has executed, if the recording has all events that report it.
    pub(super) programs: HashMap<Pid, String>,
    pub(super) names: HashMap<Tid, String>,
    /// The increase of each counter, regardless of the filter; `None` where it is unknown.
    pub counters: Vec<(String, Option<u64>)>,
    /// What triggered samples: `cpu-clock` or `cycles`; empty without samples.
    pub trigger: String,
    /// How many samples a second were asked for.
    pub hertz: u64,
    /// Whether the callers of functions were found in copies of stacks; else by frame pointers.
    pub copies_stacks: bool,
    /// Whether the recording has not all mappings of files: then it is not known which functions call chains
    /// lead to.
    pub(super) lacks_mappings: bool,
    /// Samples that were lost.
    pub lost: Losses,
    /// How long what was analysed lasted, ns.
    pub duration_ns: Duration,
}

impl Samples {
    /// The code that the only sample has hit: its file, and the offset there. `None` if there are several
    /// samples, or if the code is in no known file.
    pub fn hit(&self) -> Option<(&Image, u64)> {
        let mut stacks = self.stacks.iter();
        let (Some((stack, Weight { samples: 1, .. })), None) = (stacks.next(), stacks.next()) else {
            return None;
        };
        match self.codes.code(*stack.codes.first()?) {
            Code::File { image, offset } => Some((&self.codes.images[image as usize], offset)),
            Code::Kernel { .. } | Code::Jit { .. } | Code::Unknown => None,
        }
    }
}
