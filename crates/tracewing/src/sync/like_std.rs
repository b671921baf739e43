//! What the locks have as those of the standard library do, and record nothing of.

/// Implements it for a lock that wraps `sync::$Lock`.
macro_rules! like_std {
    ($Lock:ident) => {
        impl<T> $Lock<T> {
            /// As the standard library's.
            pub const fn new(value: T) -> Self {
                Self(sync::$Lock::new(value))
            }

            /// As the standard library's.
            ///
            /// # Errors
            /// It is poisoned.
            pub fn into_inner(self) -> LockResult<T> {
                self.0.into_inner()
            }
        }

        impl<T: ?Sized> $Lock<T> {
            /// As the standard library's.
            pub fn is_poisoned(&self) -> bool {
                self.0.is_poisoned()
            }

            /// As the standard library's.
            pub fn clear_poison(&self) {
                self.0.clear_poison();
            }

            /// As the standard library's.
            ///
            /// # Errors
            /// It is poisoned.
            pub fn get_mut(&mut self) -> LockResult<&mut T> {
                self.0.get_mut()
            }
        }

        impl<T> From<T> for $Lock<T> {
            fn from(value: T) -> Self {
                Self::new(value)
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $Lock<T> {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

pub(super) use like_std;
