//! Cases whose outcome differs from what their suite expects, or from babeltrace2's, with reasons. Of those
//! that their suite expects otherwise, babeltrace2 2.0 behaves as we do.

/// Attributes in quotes.
const QUOTED: &str = "a word in quotes means what it means without them, as for babeltrace2";

const DIFFERS: [(&str, &str); 6] = [
    (
        "succeed/metadata-string-literal-escape",
        "line ends in an event's name are shown as escapes; babeltrace2 prints them",
    ),
    ("succeed/stream-integer-large-size", "integers of more than 64 bits are refused, as by babeltrace2"),
    (
        "fail/metadata-array-size-identifier",
        "a length outside of structures is looked up where the type is used, and this one never is",
    ),
    ("fail/metadata-integer-base-as-string", QUOTED),
    ("fail/metadata-integer-encoding-as-string", QUOTED),
    ("fail/metadata-integer-signed-as-string", QUOTED),
];

/// Why the case of this name differs, if it is known to.
pub fn reason(case: &str) -> Option<&'static str> {
    let name = case.strip_prefix("traces/1/")?;
    DIFFERS.iter().find(|(differs, _)| *differs == name).map(|(_, reason)| *reason)
}
