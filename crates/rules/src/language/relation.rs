//! Relations between numbers as sets of orders, and how such a set changes when one side is rounded to the
//! other side's type.

use super::integer::Integer;
use crate::filter::{EQUAL, GREATER, LESS};
use std::cmp::Ordering;

/// The orders of left and right side that a relation accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Orders(pub(crate) u8);

impl Orders {
    pub(crate) const EQUAL: Self = Self(EQUAL);
    pub(crate) const NOT_EQUAL: Self = Self(LESS | GREATER);
    pub(crate) const LESS: Self = Self(LESS);
    pub(crate) const AT_MOST: Self = Self(LESS | EQUAL);
    pub(crate) const GREATER: Self = Self(GREATER);
    pub(crate) const AT_LEAST: Self = Self(GREATER | EQUAL);

    /// Whether the relation accepts this order of the left side to the right one; NaN has none.
    pub fn accept(self, order: Option<Ordering>) -> bool {
        let bit = match order {
            None => 0,
            Some(Ordering::Less) => LESS,
            Some(Ordering::Equal) => EQUAL,
            Some(Ordering::Greater) => GREATER,
        };
        self.0 & bit != 0
    }

    /// The relation with its sides swapped.
    pub(crate) fn mirrored(self) -> Self {
        let swapped = |from: u8, to: u8| if self.0 & from != 0 { to } else { 0 };
        Self(self.0 & EQUAL | swapped(LESS, GREATER) | swapped(GREATER, LESS))
    }

    /// The relation to `right ± a bit`, if the left side is never strictly between the two: `moved` is how
    /// the new right side compares with the old one.
    fn shifted(self, moved: Ordering) -> Self {
        match moved {
            Ordering::Equal => self,
            Ordering::Less => Self(self.0 & (LESS | GREATER) | self.equal_if(LESS)),
            Ordering::Greater => Self(self.0 & (LESS | GREATER) | self.equal_if(GREATER)),
        }
    }

    fn equal_if(self, order: u8) -> u8 {
        if self.0 & order != 0 { EQUAL } else { 0 }
    }

    /// The relation to `right`, expressed for floating-point numbers.
    pub(crate) fn with_real(self, right: Integer) -> (Self, f64) {
        let (near, moved) = right.nearest_real();
        (self.shifted(moved), near)
    }

    /// The relation to `right`, which is finite, expressed for integers.
    pub(crate) fn with_integer(self, right: f64) -> (Self, Integer) {
        let floor = right.floor();
        let moved = if floor == right { Ordering::Equal } else { Ordering::Less };
        let (orders, near) = (self.shifted(moved), Integer::from_real(floor));
        if floor >= 2_f64.powi(128) {
            (orders.shifted(Ordering::Less), near)
        } else if floor < -2_f64.powi(127) {
            (orders.shifted(Ordering::Greater), near)
        } else {
            (orders, near)
        }
    }

    /// The same relation for a left side between `least` and `largest`, with the right side moved into that
    /// range.
    pub(crate) fn within(self, right: Integer, least: Integer, largest: Integer) -> (Self, Integer) {
        if right < least {
            (self.shifted(Ordering::Greater), least)
        } else if right > largest {
            (self.shifted(Ordering::Less), largest)
        } else {
            (self, right)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Orders; 6] =
        [Orders::EQUAL, Orders::NOT_EQUAL, Orders::LESS, Orders::AT_MOST, Orders::GREATER, Orders::AT_LEAST];

    #[test]
    fn rounding_a_side_does_not_change_the_relation() {
        for orders in ALL {
            for right in [2.5, -2.5, 3.0, 1e300, -1e300, 2_f64.powi(128), -2_f64.powi(127), 0.0, -0.5] {
                let (rounded, integer) = orders.with_integer(right);
                for left in [-4, -3, -2, -1, 0, 2, 3, 4] {
                    assert_eq!(
                        rounded.accept(Some(Integer::from(left).cmp(&integer))),
                        orders.accept(f64::from(left).partial_cmp(&right)),
                        "{left} {orders:?} {right}"
                    );
                }
                for (left, real) in [(Integer::MIN, -2_f64.powi(127)), (Integer::MAX, 2_f64.powi(128) - 1.0)]
                {
                    if real.abs() != right.abs() {
                        assert_eq!(
                            rounded.accept(Some(left.cmp(&integer))),
                            orders.accept(real.partial_cmp(&right))
                        );
                    }
                }
            }
            assert!(!Orders::EQUAL.with_integer(2_f64.powi(128)).0.accept(Some(Ordering::Equal)));
            for right in [(1_i64 << 53) + 1, -(1 << 53) - 1, 5] {
                let (rounded, real) = orders.with_real(right.into());
                for left in [right - 3, right - 1, right + 1, right + 3] {
                    let exact = left as f64;
                    assert_eq!(exact as i64, left, "the test's own numbers");
                    assert_eq!(
                        rounded.accept(exact.partial_cmp(&real)),
                        orders.accept(Some(left.cmp(&right))),
                        "{left} {orders:?} {right}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_right_side_out_of_range_becomes_one_in_range() {
        for orders in ALL {
            for right in [-300, -1, 0, 7, 255, 256, 1000] {
                let (within, cut) = orders.within(Integer::from(right), 0_u8.into(), 255_u8.into());
                for left in 0..=255 {
                    assert_eq!(
                        within.accept(Some(Integer::from(left).cmp(&cut))),
                        orders.accept(Some(left.cmp(&right))),
                        "{left} {orders:?} {right}"
                    );
                }
            }
        }
    }

    #[test]
    fn sides_can_be_exchanged() {
        for orders in ALL {
            for (left, right) in [(1, 2), (2, 2), (3, 2)] {
                assert_eq!(
                    orders.accept(Some(left.cmp(&right))),
                    orders.mirrored().accept(Some(right.cmp(&left)))
                );
            }
        }
    }
}
