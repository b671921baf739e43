//! Prints events: as babeltrace2 does, as their authors meant them, as JSON or comma-separated values.

pub(crate) mod context;
pub(crate) mod csv;
pub(crate) mod details;
pub(crate) mod follow;
pub(crate) mod json;
mod lines;
pub(crate) mod listing;
mod parallel;
pub(crate) mod places;
pub(crate) mod pretty;
pub(crate) mod print_form;
mod printer;
pub(crate) mod stamp;
pub(crate) mod style;
pub(crate) mod text;
pub(crate) mod text_template;
pub(crate) mod text_value;
mod whole;
