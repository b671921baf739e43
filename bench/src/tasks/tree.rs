//! Sumtime, the program by which the multi-level trace paper measures (3.3): it builds a binary tree of
//! tasks, which do nothing but spawn, join and add. One text for all sides, which differ in how they spawn.

/// The height of a tree.
pub const HEIGHT: u32 = 11;

/// A module that makes trees with `$spawn`, whose functions have the attribute.
macro_rules! tree {
    ($name:ident, $spawn:expr $(, $attribute:meta)?) => {
        mod $name {
            use super::tree::HEIGHT;
            use std::future::Future;
            use std::pin::Pin;
            use tokio::task::JoinHandle;

            /// Grows that many trees, one after the other.
            pub fn grow(runtime: &tokio::runtime::Runtime, trees: u64) {
                for _ in 0..trees {
                    assert_eq!(runtime.block_on(sum(HEIGHT)), 1 << HEIGHT);
                }
            }

            $(#[$attribute])?
            fn sum(height: u32) -> Pin<Box<dyn Future<Output = u64> + Send>> {
                Box::pin(async move {
                    if height == 0 {
                        return 1;
                    }
                    let (left, right) = (child(height), child(height));
                    add(left.await.unwrap(), right.await.unwrap())
                })
            }

            $(#[$attribute])?
            fn child(height: u32) -> JoinHandle<u64> {
                ($spawn)(sum(height - 1))
            }

            $(#[$attribute])?
            #[inline(never)]
            fn add(left: u64, right: u64) -> u64 {
                left + right
            }
        }
    };
}
pub(crate) use tree;
