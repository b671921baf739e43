//! The rule that every dependency comes under a licence that we may pass on with ours (MIT OR Apache-2.0).
//!
//! Licence expressions are SPDX's, with the old `/` for `OR`; exceptions (`WITH`) count as their licence.

use super::Finding;
use anyhow::{Context, Result};
use serde_json::Value;

/// Permissive licences: they ask our users for no more than naming the authors. The same is true of the CDDL
/// unless files under it are changed (`inferno`, which draws flame graphs).
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDDL-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// A package and what it says about its licence.
pub(super) struct Licensed {
    package: String,
    expression: Option<String>,
}

/// The licences of all packages in the output of `cargo metadata`.
pub(super) fn of_dependencies(metadata: &Value) -> Result<Vec<Licensed>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let licensed = packages.iter().map(|package| Licensed {
        package: format!(
            "{} {}",
            package["name"].as_str().unwrap_or("?"),
            package["version"].as_str().unwrap_or("?")
        ),
        expression: package["license"].as_str().map(str::to_owned),
    });
    Ok(licensed.collect())
}

pub(super) fn check(packages: &[Licensed]) -> Vec<Finding> {
    packages
        .iter()
        .filter(|package| !package.expression.as_deref().is_some_and(is_allowed))
        .map(|package| Finding {
            path: "Cargo.lock".to_owned(),
            line: 1,
            message: format!(
                "{}: licence `{}` is not on the allowed list",
                package.package,
                package.expression.as_deref().unwrap_or("none given")
            ),
        })
        .collect()
}

/// Whether an expression leaves a choice in which every licence is on the list.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (verdict, rest) = any_of(&words);
    verdict && rest.is_empty()
}

fn any_of<'a>(words: &'a [&'a str]) -> (bool, &'a [&'a str]) {
    let (mut verdict, mut rest) = all_of(words);
    while let ["OR", others @ ..] = rest {
        let (next, left) = all_of(others);
        (verdict, rest) = (verdict | next, left);
    }
    (verdict, rest)
}

fn all_of<'a>(words: &'a [&'a str]) -> (bool, &'a [&'a str]) {
    let (mut verdict, mut rest) = single(words);
    while let ["AND", others @ ..] = rest {
        let (next, left) = single(others);
        (verdict, rest) = (verdict & next, left);
    }
    (verdict, rest)
}

fn single<'a>(words: &'a [&'a str]) -> (bool, &'a [&'a str]) {
    match words {
        ["(", inner @ ..] => match any_of(inner) {
            (verdict, [")", rest @ ..]) => (verdict, rest),
            (_, rest) => (false, rest),
        },
        [licence, "WITH", _, rest @ ..] | [licence, rest @ ..] => (ALLOWED.contains(licence), rest),
        [] => (false, words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_judged_by_the_choice_they_leave() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR GPL-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR MIT",
        ] {
            assert!(is_allowed(good), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "", "MIT MIT", "(MIT"] {
            assert!(!is_allowed(bad), "{bad}");
        }
    }

    #[test]
    fn a_package_without_a_good_licence_is_found() {
        let of = |expression: Option<&str>| {
            check(&[Licensed { package: "a 1.0.0".into(), expression: expression.map(str::to_owned) }]).len()
        };
        assert_eq!((of(Some("MIT")), of(Some("GPL-3.0")), of(None)), (0, 1, 1));
    }
}
