//! What system calls and other causes of waiting are called.

use tracewing_trace::super_trace::Name;

/// Names by their numbers, as an analysis receives them.
#[derive(Debug, Default, Clone)]
pub struct Names(Vec<String>);

impl Names {
    /// Takes the next name.
    pub fn learn(&mut self, name: Name, text: &str) {
        let index = name.0 as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, String::new());
        }
        text.clone_into(&mut self.0[index]);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The text that `name` stands for; empty if none was reported.
    pub fn get(&self, name: Name) -> &str {
        self.0.get(name.0 as usize).map_or("", String::as_str)
    }
}
