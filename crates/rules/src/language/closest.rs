//! Which name is meant by one that is misspelt.

/// Similarity (Jaro-Winkler, 0 to 1) from which a name is probably a misspelt one.
const ALIKE: f64 = 0.85;

/// The name that is most like a pattern, whole or without its provider; `None` if none is much like it.
pub fn closest<'n>(pattern: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    let alike = |name: &str| strsim::jaro_winkler(&name.to_lowercase(), &pattern.to_lowercase());
    let rated = names.map(|name| {
        let short = name.rsplit(':').next().unwrap_or(name);
        (alike(name).max(alike(short)), name)
    });
    let (rate, name) = rated.max_by(|(a, first), (b, second)| a.total_cmp(b).then(second.cmp(first)))?;
    (rate >= ALIKE).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn misspelt_names_are_found() {
        let meant = |pattern| {
            let names = ["sched_switch", "shop:served", "shop:answered", "syscall_entry_futex"];
            closest(pattern, names.into_iter())
        };
        for (pattern, name) in [
            ("sched_swich", "sched_switch"),
            ("served", "shop:served"),
            ("Shop:Anwsered", "shop:answered"),
            ("futex", ""),
            ("block_rq_issue", ""),
            ("", ""),
        ] {
            assert_eq!(meant(pattern).as_deref().unwrap_or_default(), name, "{pattern}");
        }
        assert_eq!(closest("anything", std::iter::empty()), None);
    }
}
