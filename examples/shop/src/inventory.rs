//! The shop's stock, protected by one lock.

use crate::events::{InventoryLocked, Outcome, SoldOut};
use std::sync::{Mutex, PoisonError};
use tracewing::emit;

/// Number of different items.
pub const ITEMS: u32 = 64;

/// Quantity of a delivery after an item has sold out.
const DELIVERY: u32 = 500;

/// The stock of all items.
pub struct Inventory {
    left: Mutex<Vec<u32>>,
}

impl Inventory {
    /// A full stock of every item.
    pub fn new() -> Self {
        Self { left: Mutex::new(vec![DELIVERY; ITEMS as usize]) }
    }

    /// Takes `quantity` of an item for an order; if the stock does not suffice, orders a delivery and sells
    /// nothing.
    pub fn take(&self, order: u64, item: u32, quantity: u32) -> Outcome {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        emit!(InventoryLocked { order });
        let Some(left) = left.get_mut(item as usize) else { return Outcome::SoldOut };
        if *left < quantity {
            emit!(SoldOut { item, requested: quantity, left: *left });
            *left += DELIVERY;
            return Outcome::SoldOut;
        }
        *left -= quantity;
        Outcome::Sold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_sells_out_and_comes_in_again() {
        let inventory = Inventory::new();
        assert_eq!(inventory.take(1, 0, DELIVERY), Outcome::Sold);
        assert_eq!(inventory.take(2, 0, 1), Outcome::SoldOut);
        assert_eq!(inventory.take(3, 0, 1), Outcome::Sold);
        assert_eq!(inventory.take(4, ITEMS, 1), Outcome::SoldOut);
    }
}
