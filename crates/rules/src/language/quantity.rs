//! Numbers with a unit in predicates, such as `1.5ms` and `64K`: compared with a field in the field's own
//! unit.

use super::integer::Integer;
use std::fmt;

/// What a unit measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dimension {
    /// Counted in nanoseconds.
    Time,
    /// Counted in bytes.
    Size,
}

/// A unit: how many nanoseconds or bytes it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unit {
    dimension: Dimension,
    factor: u128,
}

const fn time(factor: u128) -> Unit {
    Unit { dimension: Dimension::Time, factor }
}

const fn size(factor: u128) -> Unit {
    Unit { dimension: Dimension::Size, factor }
}

/// Units by their names, in predicates and of fields.
const UNITS: [(&str, Unit); 16] = [
    ("ns", time(1)),
    ("us", time(1_000)),
    ("µs", time(1_000)),
    ("ms", time(1_000_000)),
    ("s", time(1_000_000_000)),
    ("min", time(60_000_000_000)),
    ("h", time(3_600_000_000_000)),
    ("B", size(1)),
    ("K", size(1 << 10)),
    ("M", size(1 << 20)),
    ("G", size(1 << 30)),
    ("KiB", size(1 << 10)),
    ("MiB", size(1 << 20)),
    ("GiB", size(1 << 30)),
    ("bytes", size(1)),
    ("byte", size(1)),
];

fn unit(name: &str) -> Option<Unit> {
    UNITS.into_iter().find(|(known, _)| *known == name).map(|(_, unit)| unit)
}

/// A number of units: a fraction, so that it is exact in any of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantity {
    text: String,
    is_negative: bool,
    numerator: u128,
    denominator: u128,
    unit: Unit,
}

impl Quantity {
    /// Reads decimal digits, perhaps with a fraction, and a unit. `None` if there is no such unit, or the
    /// digits are no number or more than fit.
    pub(crate) fn parse(digits: &str, name: &str, is_negative: bool) -> Option<Self> {
        let unit = unit(name)?;
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(fraction) || digits.ends_with('.') {
            return None;
        }
        let numerator = format!("{whole}{fraction}").parse().ok()?;
        let denominator = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let sign = if is_negative { "-" } else { "" };
        Some(Self { text: format!("{sign}{digits}{name}"), is_negative, numerator, denominator, unit })
    }

    /// The number for a comparison with values in a unit; in nanoseconds or bytes if that is not known.
    /// `None` if the unit measures something else.
    pub(crate) fn counted(&self, of: Option<&str>) -> Option<Counted> {
        let one = Unit { factor: 1, ..self.unit };
        let unit = of.map_or(Some(one), unit).filter(|unit| unit.dimension == self.unit.dimension)?;
        let units = self.numerator.checked_mul(self.unit.factor);
        let parts = self.denominator.checked_mul(unit.factor);
        let whole = units.zip(parts).filter(|(units, parts)| units % parts == 0);
        let signed = |number: Integer| if self.is_negative { number.checked_neg() } else { Some(number) };
        if let Some(number) = whole.map(|(units, parts)| Integer::from(units / parts)).and_then(signed) {
            return Some(Counted::Whole(number));
        }
        let number = self.numerator as f64 * self.unit.factor as f64;
        let number = number / (self.denominator as f64 * unit.factor as f64);
        Some(Counted::Real(if self.is_negative { -number } else { number }))
    }
}

/// How many of a unit a quantity is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Counted {
    Whole(Integer),
    Real(f64),
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(digits: &str, name: &str, of: Option<&str>) -> Option<Counted> {
        Quantity::parse(digits, name, false).unwrap().counted(of)
    }

    #[test]
    fn quantities_are_exact_in_the_unit_of_the_field() {
        let whole = |number: u64| Some(Counted::Whole(number.into()));
        assert_eq!(counted("1", "s", None), whole(1_000_000_000));
        assert_eq!(counted("1.5", "ms", Some("ns")), whole(1_500_000));
        assert_eq!(counted("1.5", "ms", Some("us")), whole(1_500));
        assert_eq!(counted("1.5", "us", Some("us")), Some(Counted::Real(1.5)));
        assert_eq!(counted("1", "h", Some("s")), whole(3600));
        assert_eq!(counted("64", "K", None), whole(65_536));
        assert_eq!(counted("64", "K", Some("bytes")), whole(65_536));
        assert_eq!(counted("1.5", "GiB", Some("MiB")), whole(1536));
        let negative = Quantity::parse("2", "ns", true).unwrap();
        assert_eq!(negative.counted(None), Some(Counted::Whole(Integer::from(-2))));
    }

    #[test]
    fn units_of_something_else_are_refused() {
        for unit in ["bytes", "cycles", "orders"] {
            assert_eq!(counted("1", "s", Some(unit)), None, "{unit}");
        }
        assert_eq!(counted("1", "K", Some("ns")), None);
        assert_eq!(Quantity::parse("1", "sec", false), None);
        assert_eq!(Quantity::parse("", "s", false), None);
        assert_eq!(Quantity::parse("1.2.3", "s", false), None);
    }
}
