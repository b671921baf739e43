//! `tracewing view`: its server answers only the user, with what other commands say, and the page in a
//! browser shows that.

#[path = "../sweep/commands.rs"]
#[allow(dead_code, reason = "the lists of what may differ are of the other tests")]
mod commands;
#[path = "../../../trace/tests/common/mod.rs"]
mod common;
#[path = "../harness/mod.rs"]
mod harness;
#[path = "../../../trace/tests/common/hostile.rs"]
mod hostile;
#[path = "../../../trace/tests/common/switches.rs"]
mod switches;

mod analyses;
mod area;
mod attacks;
mod browser;
mod causes;
mod cdp;
mod client;
mod compare;
mod conditions;
mod counters;
mod counts;
mod drawn;
mod errors;
mod filling;
mod foreign;
mod groups;
mod hatching;
mod held;
mod input;
mod keys;
mod kin;
mod late;
mod left;
mod links;
mod live;
mod lost;
mod many;
mod memory;
mod newcomer;
mod notes;
mod numbers;
mod own;
mod parts;
mod pictures;
mod places;
mod polls;
mod reload;
mod sampled;
mod search;
mod selection;
mod series;
mod source;
mod started;
mod tables;
mod values;
