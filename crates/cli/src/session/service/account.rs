//! By whose limits a user is treated: the processes of a user can have all of its subordinate ids
//! (`/etc/subuid`), in a user namespace that each user can make, and these together are one user to a
//! service.

use crate::owner::uid_of;

const SUBORDINATES: &str = "/etc/subuid";
const USERS: &str = "/etc/passwd";

/// The user that has this subordinate id; otherwise the user itself.
pub fn account_of(user: u32) -> u32 {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    owner_of(&read(SUBORDINATES), || read(USERS), user).unwrap_or(user)
}

fn owner_of(subordinates: &str, users: impl FnOnce() -> String, id: u32) -> Option<u32> {
    let range = |line: &str| {
        let mut fields = line.split(':').map(str::to_owned);
        let (owner, first) = (fields.next()?, fields.next()?.parse::<u32>().ok()?);
        let count = fields.next()?.trim().parse::<u32>().ok()?;
        Some((owner, first, count))
    };
    let mut ranges = subordinates.lines().filter_map(range);
    let (owner, first, _) =
        ranges.find(|(_, first, count)| id.checked_sub(*first).is_some_and(|at| at < *count))?;
    // That of an unknown user is one account, too.
    Some(owner.parse().ok().or_else(|| uid_of(&users(), &owner)).unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subordinate_ids_are_their_users() {
        let users = || "root:x:0:0::/:/bin/sh\nann:x:1000:1000::/:/bin/sh\n".to_owned();
        let ranges =
            "ann:100000:65536\nbroken\n1001:165536:10\ngone:200000:5\nann:300000:1\nx:4294967295:9\n";
        let owner = |id| owner_of(ranges, users, id);
        for (ids, expected) in [
            (&[100_000, 165_535, 300_000][..], Some(1000)),
            (&[165_536, 165_545], Some(1001)),
            (&[200_000, 200_004], Some(200_000)),
            (&[0, 1000, 99_999, 165_546, 199_999, 200_005, 300_001], None),
            (&[u32::MAX], Some(u32::MAX)),
        ] {
            ids.iter().for_each(|id| assert_eq!(owner(*id), expected, "{id}"));
        }
    }
}
