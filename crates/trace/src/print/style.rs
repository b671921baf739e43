//! In which form events are printed, and which parts of them: babeltrace2's `--fields`, `--names` and
//! `--clock-*` options.

use crate::time::zone::Zone;
use crate::{Error, UsageFault};

/// How events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// The text that babeltrace2 prints.
    #[default]
    Text,
    /// As their authors meant them.
    Pretty,
    /// A line of JSON each.
    Json,
    /// A line of comma-separated values each, below one with the names of the columns.
    Csv,
}

/// How a stamp is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockStyle {
    /// In cycles of the trace's clock; goes before everything else.
    pub cycles: bool,
    /// As seconds since the clock's origin instead of the time of day.
    pub seconds: bool,
    /// With the date before the time of day.
    pub date: bool,
    /// The zone of date and time of day.
    pub zone: Zone,
}

/// Which names are printed before values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameStyle {
    /// Of payload fields.
    pub payload: bool,
    /// Of fields of the contexts.
    pub context: bool,
    /// Names in the part before the event's name, and the event's name itself.
    pub header: bool,
    /// Of the scopes, such as `event.fields`.
    pub scope: bool,
}

impl Default for NameStyle {
    fn default() -> Self {
        NameStyle { payload: true, context: true, header: false, scope: false }
    }
}

impl NameStyle {
    /// Reads the values of `--names`: `payload` (`arg`, `args`), `context` (`ctx`), `scope`, `header`, `all`,
    /// `none`.
    ///
    /// What is not named is left out. Without values, [`NameStyle::default`].
    ///
    /// # Errors
    /// [`Error::Usage`] on another word, or on `all` together with `none`.
    pub fn parse<S: AsRef<str>>(values: &[S]) -> Result<Self, Error> {
        if values.is_empty() {
            return Ok(NameStyle::default());
        }
        let has = |word: &str| values.iter().any(|value| value.as_ref() == word);
        if has("all") && has("none") {
            return Err(UsageFault::AllAndNone.into());
        }
        let all = has("all");
        let mut style = NameStyle { payload: all, context: all, header: all, scope: all };
        for value in values {
            match value.as_ref() {
                "payload" | "arg" | "args" => style.payload = true,
                "context" | "ctx" => style.context = true,
                "header" => style.header = true,
                "scope" => style.scope = true,
                "all" | "none" => {}
                other => {
                    return Err(UsageFault::UnknownName(other.to_owned()).into());
                }
            }
        }
        Ok(style)
    }
}

/// What is printed between an event's stamp and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldStyle {
    /// The trace's name.
    pub trace: bool,
    /// The host's name.
    pub hostname: bool,
    /// The tracer's domain, such as `ust`.
    pub domain: bool,
    /// The process's name.
    pub procname: bool,
    /// The process's id.
    pub vpid: bool,
    /// The event's log level.
    pub log_level: bool,
    /// The URI of the event's model.
    pub emf: bool,
}

impl Default for FieldStyle {
    fn default() -> Self {
        FieldStyle { hostname: true, procname: true, vpid: true, ..FieldStyle::NONE }
    }
}

impl FieldStyle {
    const NONE: FieldStyle = FieldStyle {
        trace: false,
        hostname: false,
        domain: false,
        procname: false,
        vpid: false,
        log_level: false,
        emf: false,
    };

    /// Reads the values of `--fields`: `trace`, `trace:hostname`, `trace:domain`, `trace:procname`,
    /// `trace:vpid`, `loglevel`, `emf`, `callsite` (which CTF 1.8 does not have), `all`.
    ///
    /// What is not named is left out. Without values, [`FieldStyle::default`].
    ///
    /// # Errors
    /// [`Error::Usage`] on another word.
    pub fn parse<S: AsRef<str>>(values: &[S]) -> Result<Self, Error> {
        if values.is_empty() {
            return Ok(FieldStyle::default());
        }
        let mut style = FieldStyle::NONE;
        for value in values {
            match value.as_ref() {
                "all" => {
                    style = FieldStyle {
                        trace: true,
                        hostname: true,
                        domain: true,
                        procname: true,
                        vpid: true,
                        log_level: true,
                        emf: true,
                    }
                }
                "trace" => style.trace = true,
                "trace:hostname" => style.hostname = true,
                "trace:domain" => style.domain = true,
                "trace:procname" => style.procname = true,
                "trace:vpid" => style.vpid = true,
                "loglevel" => style.log_level = true,
                "emf" => style.emf = true,
                "callsite" => {}
                other => {
                    return Err(UsageFault::UnknownField(other.to_owned()).into());
                }
            }
        }
        Ok(style)
    }
}

/// How the text form prints events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// How stamps are printed.
    pub clock: ClockStyle,
    /// Whether the time since the previous printed event follows the stamp.
    pub delta: bool,
    /// Which fields have their name before the value.
    pub names: NameStyle,
    /// What comes before the event's name.
    pub fields: FieldStyle,
}

impl Default for Style {
    fn default() -> Self {
        Style {
            clock: ClockStyle::default(),
            delta: true,
            names: NameStyle::default(),
            fields: FieldStyle::default(),
        }
    }
}
