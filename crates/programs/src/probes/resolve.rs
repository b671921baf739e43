//! Turns the user's request into probes for the kernel.

use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol, ReadRef};
use tracewing_kernel::{Argument, Probe};
use tracewing_rules::Glob;

use crate::elf::{Segment, Segments, debug_file};
use crate::image::{Files, Image, find_library};
use crate::probes::file::{Elf, has_section, is_static, open, parse};
use crate::probes::functions::{Function, Functions};
use crate::probes::instructions;
use crate::probes::operand::At;
use crate::probes::place::Place;
use crate::probes::request::{AtFunction, Place as Spot, RequestedValue, Source, Usdt as UsdtRequest};
use crate::probes::sequences::Sequences;
use crate::probes::usdt::{self, Usdt};
use crate::probes::variables::Variables;
use crate::probes::{ArgumentFault, Error, OperandFault, PlaceFault, ValueFault};
use crate::sites::Listing;

/// Probes, and remarks for the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Probes to place.
    pub probes: Vec<Probe>,
    /// Sentences for the user, one per line.
    pub remarks: Vec<String>,
}

impl Resolved {
    /// Adds the probes of another request. Equal probes with equal arguments are kept once.
    pub fn unite(&mut self, other: Self) {
        for probe in other.probes {
            if !self.probes.iter().any(|known| is_same(known, &probe)) {
                self.probes.push(probe);
            }
        }
        for remark in other.remarks {
            if !self.remarks.contains(&remark) {
                self.remarks.push(remark);
            }
        }
    }
}

/// The address at an offset of a function, and its segment, if the kernel can place a probe there without
/// harm.
fn allowed(
    path: &Path,
    elf: &Elf<'_>,
    function: &Function,
    request: &AtFunction,
) -> Result<(u64, Segment), PlaceFault> {
    if request.at_return && is_go(elf) {
        return Err(PlaceFault::Go);
    }
    let offset = request.offset;
    if function.is_indirect {
        return Err(PlaceFault::Chooser);
    }
    let address = function.address.wrapping_add(offset);
    if function.size > 0 && offset >= function.size {
        return Err(PlaceFault::AfterEnd(function.size));
    }
    let segment = *Segments::of(elf).code(address).ok_or(PlaceFault::NoCode)?;
    if let Some((before, after)) = misplaced(elf, function, offset) {
        return Err(PlaceFault::NoInstruction { before, after });
    }
    if Sequences::of(elf).contain(address) {
        return Err(PlaceFault::InSequence);
    }
    match own_site(path, elf, address) {
        Some(site) => Err(PlaceFault::Site(site)),
        None => Ok((address, segment)),
    }
}

/// Whether code of a file was compiled by Go. Some may be C's, but no section says which.
fn is_go(elf: &Elf<'_>) -> bool {
    [".go.buildinfo", ".gopclntab", ".note.go.buildid"].iter().any(|name| has_section(elf, name))
}

/// How often a function is inlined, if it is.
fn inlined(copies: usize) -> Option<String> {
    match copies {
        0 => None,
        1 => Some("once".to_owned()),
        copies => Some(format!("{copies} times")),
    }
}

/// Whether two probes are equal, whatever paths name their files.
fn is_same(one: &Probe, other: &Probe) -> bool {
    let file = |probe: &Probe| fs::canonicalize(&probe.file).unwrap_or_else(|_| probe.file.clone());
    file(one) == file(other) && *one == Probe { file: one.file.clone(), ..other.clone() }
}

/// Finds programs and libraries by their names, and places in them.
#[derive(Debug, Default)]
pub struct Resolver {
    /// The program to be recorded.
    command: Option<PathBuf>,
    /// That program and the libraries it needs.
    objects: Vec<PathBuf>,
}

impl Resolver {
    /// A resolver for a recording of this command; if the command cannot be read, nothing else is known about
    /// it.
    pub fn new(command: Option<&str>) -> Self {
        let command = command.and_then(in_path);
        let files = command.as_ref().and_then(|command| Files::open(&[command]).ok());
        let objects = files.map_or_else(Vec::new, |files| {
            files.objects().iter().map(|object| PathBuf::from(&object.name)).collect()
        });
        Self { command, objects }
    }

    /// The file that a name refers to: a path, one of the command's objects, a command, or a library.
    fn file(&self, name: &str) -> Result<PathBuf, Error> {
        if name.contains('/') {
            return Ok(PathBuf::from(name));
        }
        let of_command = self.objects.iter().find(|path| path.file_name().is_some_and(|own| own == name));
        of_command
            .cloned()
            .or_else(|| in_path(name))
            .or_else(|| find_library(name))
            .ok_or_else(|| Error::NoFile { name: name.to_owned() })
    }

    /// The probe for the request `PROGRAM:FUNCTION[+OFFSET][%return] [ARGUMENT]…`.
    ///
    /// # Errors
    /// The reason why the probe is impossible.
    pub fn probe(&self, text: &str) -> Result<Resolved, Error> {
        let request = AtFunction::parse(text)?;
        let path = self.file(&request.program)?;
        let bytes = open(&path)?;
        let elf = parse(&path, &bytes)?;
        let debug_path = debug_file(&path, &elf).filter(|_| !has_section(&elf, ".symtab"));
        let debug_bytes = debug_path.as_deref().map(open).transpose()?;
        let debug = match (&debug_path, &debug_bytes) {
            (Some(path), Some(bytes)) => Some(parse(path, bytes)?),
            _ => None,
        };
        let functions = Functions::of(&elf, debug.as_ref());
        let program = file_name(&path);
        let function = match &request.place {
            Spot::Function(name) => functions.find(&program, name)?.clone(),
            Spot::Address(address) => {
                Function { address: *address, size: 0, symbol: format!("{address:#x}"), is_indirect: false }
            }
        };
        let forbidden = |reason| Error::Forbidden {
            place: text.split_whitespace().next().unwrap_or_default().to_owned(),
            reason,
        };
        let (address, segment) = allowed(&path, &elf, &function, &request).map_err(forbidden)?;
        let mut remarks = self.unused(&path, &program);
        let variables = Variables::new(&elf, debug.as_ref(), function.address, address, segment);
        let arguments = request
            .arguments
            .iter()
            .map(|requested| {
                let found = self::argument(requested, &variables, request.at_return);
                found.map_err(|reason| Error::Argument {
                    probe: format!("{program}:{}", function.symbol),
                    argument: requested.text.clone(),
                    reason,
                })
            })
            .collect::<Result<_, _>>()?;
        let copies = variables.inlined_copies();
        remarks.extend(inlined(copies).map(|times| {
            format!("{program}:{} is also inlined {times}, which a probe does not see", function.symbol)
        }));
        let spot = match &request.place {
            Spot::Function(name) => name.clone(),
            Spot::Address(_) => function.symbol,
        };
        let offset = if request.offset > 0 { format!("+{:#x}", request.offset) } else { String::new() };
        let end = if request.at_return { "%return" } else { "" };
        let probe = Probe {
            name: format!("{program}:{spot}{offset}{end}"),
            offset: segment.place(address),
            file: path,
            semaphore: None,
            at_return: request.at_return,
            arguments,
        };
        Ok(Resolved { probes: vec![probe], remarks })
    }

    /// The probes for the request `[PROGRAM:]PROVIDER:NAME [ARGUMENT]…`: one for each place of each probe of
    /// that name.
    ///
    /// # Errors
    /// The reason why there is no such probe.
    pub fn usdt(&self, text: &str) -> Result<Resolved, Error> {
        let request = UsdtRequest::parse(text)?;
        let files = match &request.program {
            Some(program) => vec![self.file(program)?],
            None => self.objects.clone(),
        };
        let mut resolved = Resolved::default();
        let mut others = Vec::new();
        for path in &files {
            let bytes = open(path)?;
            let elf = parse(path, &bytes)?;
            let sequences = Sequences::of(&elf);
            for place in usdt::of(&elf) {
                let requested = Glob::new(&*request.provider).matches(&place.provider)
                    && Glob::new(&*request.name).matches(&place.name);
                if !requested {
                    others.push(format!("{}:{}", place.provider, place.name));
                } else if sequences.contain(place.address) {
                    let place = format!("{}:{}", place.provider, place.name);
                    return Err(Error::Forbidden { place, reason: PlaceFault::InSequence });
                } else {
                    resolved.probes.push(at(path, &elf, &place, &request.arguments, &mut resolved.remarks)?);
                }
            }
        }
        resolved.remarks.dedup();
        if !resolved.probes.is_empty() {
            if let Some(program) = &request.program {
                let path = &files[0];
                let remarks = self.unused(path, program);
                resolved.remarks.extend(remarks);
            }
            return Ok(resolved);
        }
        others.dedup();
        let requested = format!("{}:{}", request.provider, request.name);
        others.sort_by(|a, b| {
            strsim::jaro_winkler(b, &requested).total_cmp(&strsim::jaro_winkler(a, &requested))
        });
        others.truncate(3);
        let hint = match (files.is_empty(), others.is_empty()) {
            (true, _) => {
                "; the command cannot be read: name the program, as PROGRAM:PROVIDER:NAME".to_owned()
            }
            (_, true) => {
                " (there are none at all); `tracewing sites PROGRAM` lists those of a program".to_owned()
            }
            (..) => format!("; it has {}, ...; `tracewing sites` lists them", others.join(", ")),
        };
        let program = match files.len() {
            1 => file_name(&files[0]),
            _ => "the command and its libraries".to_owned(),
        };
        Err(Error::NoUsdt { name: requested, program, hint })
    }

    /// Why the command will not reach a probe in this file, if that is certain.
    fn unused(&self, path: &Path, program: &str) -> Vec<String> {
        let Some(command) = &self.command else { return Vec::new() };
        let same = path.canonicalize().ok() == command.canonicalize().ok();
        let is_library = program.contains(".so");
        let bytes = open(command).ok();
        let elf = bytes.as_ref().and_then(|bytes| parse(command, bytes).ok());
        match elf {
            Some(elf) if !same && is_library && is_static(&elf) => {
                let name = file_name(command);
                vec![format!(
                    "{name} is statically linked: it does not use {program}, but may have the function itself (--probe {name}:FUNCTION)"
                )]
            }
            _ => Vec::new(),
        }
    }
}

/// The beginnings of the instructions around an offset that is inside an instruction.
fn misplaced(elf: &Elf<'_>, function: &Function, offset: u64) -> Option<(u64, u64)> {
    let begin = Segments::of(elf).offset(function.address).filter(|_| offset > 0)?;
    let code = elf.data().read_bytes_at(begin, function.size).ok()?;
    instructions::around(code, offset)
}

/// The event whose tracewing site is at an address: under a probe, the kernel executes the file's
/// instruction, which is that of a disabled site.
fn own_site(path: &Path, elf: &Elf<'_>, address: u64) -> Option<String> {
    elf.section_by_name(tracewing_abi::site::SECTION)?;
    let listing = Listing::of(&Files::open(&[path]).ok()?);
    let mut here = listing.sites.iter().filter(|site| site.object == 0 && site.address == Some(address));
    here.next().map(|site| site.class.name.clone())
}

/// The probe at one place of a USDT probe.
fn at(
    path: &Path,
    elf: &Elf<'_>,
    place: &Usdt,
    requested: &[RequestedValue],
    remarks: &mut Vec<String>,
) -> Result<Probe, Error> {
    let name = format!("{}:{}", place.provider, place.name);
    let segments = Segments::of(elf);
    let nowhere = |reason| Error::Forbidden { place: name.clone(), reason };
    let segment = *segments.code(place.address).ok_or_else(|| nowhere(PlaceFault::NoInstructionInFile))?;
    let semaphore = place
        .semaphore
        .map(|address| segments.offset(address).ok_or_else(|| nowhere(PlaceFault::NoSemaphoreInFile)));
    let mut values = Vec::new();
    for (nth, (text, operand)) in place.operands().enumerate() {
        let own = format!("arg{}", nth + 1);
        let found = operand.and_then(|operand| Ok((located(&operand.at, elf, segment)?, operand.kind())));
        values.push((own, text, found));
    }
    let mut arguments = Vec::new();
    for (own, text, found) in values.iter().filter(|_| requested.is_empty()) {
        match found {
            Ok((place, kind)) => arguments.push(Argument { name: own.clone(), fetch: place.fetch(kind) }),
            Err(reason) => remarks.push(format!("{name}: left out {own} ({text}): {reason}")),
        }
    }
    for one in requested {
        let failed =
            |reason: ValueFault| Error::Argument { probe: name.clone(), argument: one.text.clone(), reason };
        let fetch = match &one.source {
            Source::Kernel(words) => in_kernels_words(words, one),
            Source::Return => return Err(failed(ArgumentFault::NoReturn.into())),
            Source::Variable { name: variable, members } => {
                let value = values.iter().find(|(own, ..)| own == variable && members.is_empty());
                let (.., found) =
                    value.ok_or_else(|| failed(ArgumentFault::NoArgument(values.len()).into()))?;
                let (place, kind) = found.clone().map_err(|fault| failed(fault.into()))?;
                place.fetch_as(one.kind.as_deref().unwrap_or(&kind))
            }
        };
        arguments.push(Argument { name: one.name.clone(), fetch });
    }
    Ok(Probe {
        offset: segment.place(place.address),
        file: path.to_owned(),
        semaphore: semaphore.transpose()?,
        at_return: false,
        arguments,
        name,
    })
}

fn located(at: &At, elf: &Elf<'_>, segment: Segment) -> Result<Place, OperandFault> {
    match at {
        At::Known(place) => Ok(place.clone()),
        At::Symbol(name, offset) => {
            let symbols = elf.symbols().chain(elf.dynamic_symbols());
            let mut found = symbols.filter(|symbol| symbol.is_definition() && symbol.name() == Ok(name));
            let symbol = found.next().ok_or_else(|| OperandFault::StrippedSymbol(name.clone()))?;
            Ok(Place::Static(segment.place(symbol.address().wrapping_add_signed(*offset))))
        }
    }
}

/// The kernel's expression for a requested value.
fn argument(
    requested: &RequestedValue,
    variables: &Variables<'_>,
    at_return: bool,
) -> Result<Argument, ValueFault> {
    let fetch = match &requested.source {
        Source::Kernel(words) => in_kernels_words(words, requested),
        Source::Return if !at_return => {
            return Err(ArgumentFault::NotAtReturn.into());
        }
        Source::Return => match &requested.kind {
            Some(kind) => Place::Returned.fetch_as(kind),
            None => variables.returned()?,
        },
        Source::Variable { .. } if at_return => {
            return Err(ArgumentFault::AtReturn.into());
        }
        Source::Variable { name, members } => variables.find(name, members, requested.kind.as_deref())?,
    };
    Ok(Argument { name: requested.name.clone(), fetch })
}

fn in_kernels_words(words: &str, requested: &RequestedValue) -> String {
    match &requested.kind {
        Some(kind) => format!("{words}:{kind}"),
        None => words.to_owned(),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The file of that name, or the command that a shell would start.
fn in_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}
