//! Functions: number of calls, durations with and without callees, and callers.
//!
//! From events of provider `function` (`docs/reference/functions.md`): of C and C++ functions by address, of
//! Rust's by name; and from probes at a function's beginning and return (`docs/reference/probes.md`). The
//! figures are those of `uftrace report`: if a function calls itself, its total includes the outermost call
//! only, but shortest, longest and average include all.
//!
//! | module | does |
//! |---|---|
//! | `event` | decodes events |
//! | `code` | where code is |
//! | `calls` | calls of each thread |
//! | `figures` | times |

mod calls;
mod code;
pub(crate) mod event;
mod figures;

use std::collections::{BTreeMap, HashMap};
use tracewing_units::{Duration, Timestamp};

use tracewing_trace::super_trace::{Change, Fold, Part, Scope, Seen};

pub use self::calls::{Call, Calls, Certain, Function, FunctionId, ThreadKey, Unmatched};
pub(crate) use self::code::Code;
pub use self::event::{FunctionRead, FunctionReader};
pub use self::figures::Figures;
use crate::analysis::{Analysis, Input, Loss};
use crate::run::Ran;
use crate::times::total;

/// The calls of one function.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionRow {
    /// The function's name, or its file and address.
    pub name: String,
    /// How often it was called.
    pub count: u64,
    /// How long single calls lasted, without those that had not ended where events were lost or at the end,
    /// or that a jump left. Its sum has calls within calls of the same function, too:
    /// [`FunctionRow::total_ns`] has not.
    pub calls: Figures,
    /// How long the function was running or called others, ns. Of the calls that `calls` does not have, it
    /// has what is certain.
    pub total_ns: Duration,
    /// How long single calls lasted less what they called.
    pub own: Figures,
    /// As `total_ns`, less what calls called.
    pub own_ns: Duration,
}

/// A place in the call graph: a function, called by those that are above it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallNode {
    /// Number of calls by this path.
    pub calls: u64,
    /// Time from begin to end of these calls, in nanoseconds; as [`FunctionRow::total_ns`].
    pub total_ns: Duration,
    /// How long less what is below, ns.
    pub own_ns: Duration,
    /// What is called from here, by name.
    pub below: BTreeMap<String, CallNode>,
}

/// The result of [`Functions`].
#[derive(Debug)]
pub struct FunctionsTable {
    /// By [`FunctionRow::total_ns`], longest first.
    pub rows: Vec<FunctionRow>,
    /// What was called from outside: the first functions of threads.
    pub graph: CallNode,
    /// What could not be matched.
    pub unmatched: Unmatched,
    /// Whether events of programs were lost, so that calls may be missing.
    pub lossy: bool,
    /// How long what was analysed lasted, ns.
    pub duration_ns: Duration,
}

/// Places in the call graph that are kept, and how deep they are, at most; calls in others count where they
/// are called from.
const NODES: usize = 1 << 20;
const DEEPEST: usize = 1 << 10;

/// Index of a node in [`Totals::nodes`].
type NodeId = u32;

#[derive(Debug, Default)]
struct Node {
    calls: u64,
    total_ns: Duration,
    own_ns: Duration,
}

#[derive(Debug, Default, Clone)]
struct Account {
    count: u64,
    calls: Figures,
    total_ns: Duration,
    own: Figures,
    own_ns: Duration,
}

/// The analysis of `tracewing functions`: calls by function, and the call graph.
#[derive(Debug)]
pub struct Functions {
    calls: Calls,
    totals: Totals,
    lossy: bool,
}

#[derive(Debug)]
struct Totals {
    accounts: Vec<Account>,
    /// The first is the root: everything outside of functions.
    nodes: Vec<Node>,
    numbers: HashMap<(NodeId, FunctionId), NodeId>,
    /// For each thread, the nodes of the calls that it is in.
    threads: HashMap<ThreadKey, Vec<NodeId>>,
}

impl Default for Functions {
    fn default() -> Self {
        Self::new()
    }
}

impl Functions {
    /// An analysis that has seen nothing yet.
    pub fn new() -> Self {
        let totals = Totals {
            accounts: Vec::new(),
            nodes: vec![Node::default()],
            numbers: HashMap::new(),
            threads: HashMap::new(),
        };
        Self { calls: Calls::default(), totals, lossy: false }
    }

    /// The result. `name` says what functions are called; those of one name are one.
    pub fn finish(mut self, ran: &Ran, name: &mut dyn FnMut(&Function) -> String) -> FunctionsTable {
        self.calls.finish(&mut |thread, time, call| self.totals.call(thread, time, call));
        let names: Vec<String> =
            (0..self.calls.count()).map(|function| name(&self.calls.function(function))).collect();
        let mut rows: HashMap<&str, FunctionRow> = HashMap::new();
        for (name, account) in names.iter().zip(&self.totals.accounts) {
            let row = rows.entry(name).or_insert_with(|| FunctionRow {
                name: name.clone(),
                count: 0,
                calls: Figures::default(),
                total_ns: Duration::ZERO,
                own: Figures::default(),
                own_ns: Duration::ZERO,
            });
            row.count += account.count;
            row.calls.merge(&account.calls);
            row.own.merge(&account.own);
            row.total_ns += account.total_ns;
            row.own_ns += account.own_ns;
        }
        let mut rows: Vec<FunctionRow> = rows.into_values().collect();
        rows.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
        FunctionsTable {
            rows,
            graph: self.totals.graph(&names),
            unmatched: self.calls.unmatched(),
            lossy: self.lossy,
            duration_ns: ran.duration_ns(),
        }
    }
}

impl Fold for Functions {
    fn change(&mut self, _: Change<'_>) {}
}

impl Analysis for Functions {
    const EARLIER: bool = true;

    const CONTINUES: bool = true;

    fn can_take(&self, parts: &[Part]) -> bool {
        Calls::has_part(parts)
    }

    fn take(&mut self, parts: &[Part]) -> bool {
        self.calls.take_part(parts)
    }

    #[inline(always)]
    fn input(&mut self, input: Input<'_>) {
        match input {
            Input::Earlier(seen) => self.calls.earlier(seen),
            Input::Event(seen) => self.event(seen),
            Input::Lost(lost) => self.lost(lost),
            Input::LossOver { time } => self.loss_over(time),
            _ => {}
        }
    }
}

impl Functions {
    fn event(&mut self, seen: &Seen<'_>) {
        let totals = &mut self.totals;
        self.calls.event(seen, &mut |thread, time, call| totals.call(thread, time, call));
    }

    fn lost(&mut self, lost: &Loss) {
        self.lossy |= lost.scope == Scope::User;
        if lost.tears_programs() {
            self.calls.lost(lost.from);
        }
    }

    fn loss_over(&mut self, time: Timestamp) {
        self.calls.loss_over(time);
    }
}

impl Totals {
    fn call(&mut self, thread: ThreadKey, time: Timestamp, call: Call) {
        match call {
            Call::Begins { function, caller_known, .. } => {
                let around = self.threads.entry(thread).or_default();
                // One whose caller is unknown is below none.
                let node = around.last().copied().filter(|_| caller_known).unwrap_or(0);
                let below = match self.numbers.get(&(node, function)) {
                    Some(below) => *below,
                    None if self.nodes.len() == NODES || around.len() >= DEEPEST => node,
                    None => {
                        let new = self.nodes.len() as NodeId;
                        self.nodes.push(Node::default());
                        self.numbers.insert((node, function), new);
                        new
                    }
                };
                around.push(below);
            }
            Call::Ends { function, begin, inner_ns, is_nested, certain, .. } => {
                let whole = || Certain { total_ns: time - begin, own_ns: time - begin - inner_ns };
                let Certain { total_ns, own_ns } = certain.unwrap_or_else(whole);
                if self.accounts.len() <= function as usize {
                    self.accounts.resize(function as usize + 1, Account::default());
                }
                let account = &mut self.accounts[function as usize];
                account.count += 1;
                account.own_ns += own_ns;
                if certain.is_none() {
                    account.calls.add(total_ns);
                    account.own.add(own_ns);
                }
                if !is_nested {
                    account.total_ns += total_ns;
                }
                let around = self.threads.entry(thread).or_default();
                if let Some(id) = around.pop() {
                    let node = &mut self.nodes[id as usize];
                    if around.last().copied().unwrap_or(0) != id {
                        node.calls += 1;
                        node.total_ns += total_ns;
                    }
                    node.own_ns += own_ns;
                }
            }
        }
    }

    fn graph(&self, names: &[String]) -> CallNode {
        let mut edges: Vec<_> =
            self.numbers.iter().map(|((above, function), node)| (*node, *above, *function)).collect();
        // Callees have greater numbers, so each is complete before it is added to its caller.
        edges.sort_unstable_by_key(|(node, ..)| std::cmp::Reverse(*node));
        let mut below: HashMap<NodeId, BTreeMap<String, CallNode>> = HashMap::new();
        for (id, above, function) in edges {
            let node = &self.nodes[id as usize];
            let called = below.remove(&id).unwrap_or_default();
            // Of calls without an end, less may be certain than of those that seem to be in them.
            let within = total(called.values().map(|node| node.total_ns)) + node.own_ns;
            let made = CallNode {
                calls: node.calls,
                total_ns: node.total_ns.max(within),
                own_ns: node.own_ns,
                below: called,
            };
            let name = names[function as usize].clone();
            below.entry(above).or_default().entry(name).or_default().merge(made);
        }
        let below = below.remove(&0).unwrap_or_default();
        let total_ns = total(below.values().map(|node| node.total_ns));
        CallNode { calls: 0, total_ns, own_ns: Duration::ZERO, below }
    }
}

impl CallNode {
    fn merge(&mut self, other: CallNode) {
        self.calls += other.calls;
        self.total_ns += other.total_ns;
        self.own_ns += other.own_ns;
        for (name, node) in other.below {
            self.below.entry(name).or_default().merge(node);
        }
    }
}
