//! Which programs may share a region with `--buffers user`: programs with the same rights that cannot gain
//! others.
//!
//! The rights are taken when a program joins. Any process can later install a filter for system calls, or
//! enter a new user namespace: it then keeps what it has mapped. Only
//! [`Sharing::Process`](crate::options::Sharing) is safe from that.

use std::fs;
use std::os::unix::fs::MetadataExt;

use tracewing_proc::Status;
use tracewing_proc::guarded::{self, NAMESPACES};

use crate::credentials::Peer;

/// The rights that programs of a region have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Domain {
    user: u32,
    group: u32,
    user_namespace: u64,
    /// `Seccomp:` and the number of filters, as proc_pid_status(5) has them.
    seccomp: String,
    is_dumpable: bool,
    /// What the Linux security module says of the process; empty without one.
    label: String,
}

impl Domain {
    /// That of a process: of the one that connected if its pidfd says so afterwards, and only then is a
    /// region given away ([`Client::ready`](crate::client::Client::ready)). `None` if it can become another
    /// user or has any right that others of its user have not, so it shares with no program; or if its rights
    /// cannot be read.
    pub(crate) fn of(peer: Peer) -> Option<Self> {
        let folder = format!("/proc/{}", peer.pid);
        let status = Status::of(peer.pid)?;
        let namespaces = NAMESPACES.iter().zip(guarded::namespaces(peer.pid, peer.pid.first_thread()));
        let is_users = |(name, number): &(&&str, u64)| **name == "user" && *number != 0;
        let (_, user_namespace) = namespaces.into_iter().find(|found| is_users(found))?;
        let owner = fs::metadata(&folder).ok()?.uid();
        let label = fs::read_to_string(format!("{folder}/attr/current")).unwrap_or_default();
        let domain = Self::new(&status, user_namespace, owner, label)?;
        (domain.user == peer.uid).then_some(domain)
    }

    fn new(status: &Status, user_namespace: u64, owner: u32, label: String) -> Option<Self> {
        let one_id = |name| {
            let mut ids = status.field(name)?.split_whitespace();
            let first: u32 = ids.next()?.parse().ok()?;
            ids.all(|id| id.parse() == Ok(first)).then_some(first)
        };
        let no_capability = |name| status.set(name).filter(|set| *set == 0);
        for name in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            no_capability(name)?;
        }
        let (user, group) = (one_id("Uid")?, one_id("Gid")?);
        let seccomp =
            format!("{} {}", status.field("Seccomp")?, status.field("Seccomp_filters").unwrap_or(""));
        let is_ordinary = user != 0 && group != 0;
        is_ordinary.then_some(Self {
            user,
            group,
            user_namespace,
            seccomp,
            is_dumpable: owner == user,
            label,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tx\nUid:\t7\t7\t7\t7\nGid:\t8\t8\t8\t8\nCapInh:\t0000000000000000\n\
        CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\n\
        Seccomp:\t0\nSeccomp_filters:\t0\n";

    fn parse(status: &str) -> Option<Domain> {
        Domain::new(&Status::from(status), 1, 7, String::new())
    }

    #[test]
    fn programs_with_the_same_rights_share() {
        assert!(parse(STATUS).is_some() && parse(STATUS) == parse(STATUS));
        let status = Status::from(STATUS);
        let differs = |other: Option<Domain>| assert!(other.is_some() && other != parse(STATUS), "{other:?}");
        differs(parse(&STATUS.replace("Seccomp:\t0", "Seccomp:\t2")));
        differs(parse(&STATUS.replace("filters:\t0", "filters:\t1")));
        differs(parse(&STATUS.replace('8', "9")));
        differs(Domain::new(&Status::from(STATUS.replace('7', "6").as_str()), 1, 6, String::new()));
        differs(Domain::new(&status, 2, 7, String::new()));
        differs(Domain::new(&status, 1, 0, String::new()));
        differs(Domain::new(&status, 1, 7, "confined".to_owned()));
    }

    #[test]
    fn those_that_can_become_another_user_do_not() {
        for (now, then) in [
            ("Uid:\t7\t7\t7\t7", "Uid:\t0\t0\t0\t0"),
            ("Uid:\t7\t7\t7\t7", "Uid:\t7\t7\t0\t7"),
            ("Uid:\t7\t7\t7\t7", "Uid:\t6\t7\t7\t7"),
            ("Gid:\t8\t8\t8\t8", "Gid:\t8\t9\t9\t9"),
            ("CapPrm:\t0000000000000000", "CapPrm:\t0000000000000080"),
            ("CapEff:\t0000000000000000", "CapEff:\t0000000000000080"),
            ("CapInh:\t0000000000000000", "CapInh:\t0000000000000080"),
            ("CapAmb:\t0000000000000000", "CapAmb:\t0000000000000080"),
            ("CapEff:\t0000000000000000", ""),
            ("Seccomp:\t0", ""),
        ] {
            assert!(STATUS.contains(now));
            assert_eq!(parse(&STATUS.replace(now, then)), None, "{then}");
        }
        assert_eq!(parse(""), None);
    }
}
