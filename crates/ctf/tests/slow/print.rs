//! Prints the slow decoder's classes as metadata, of CTF 1.8 in the shapes that LTTng writes.

use super::{Class, Event, Int, Mark, Struct, Trace};
use std::fmt::Write;

/// CTF 1.8 metadata.
pub fn tsdl(trace: &Trace) -> String {
    let order = if trace.big { "be" } else { "le" };
    let mut text = format!(
        "/* CTF 1.8 */\ntrace {{ major = 1; minor = 8; byte_order = {order}; packet.header := {}; }};\n\
         clock {{ name = c; freq = 1000000000; }};\n\
         stream {{ packet.context := {}; event.header := {};",
        structure(&trace.packet_header),
        structure(&trace.packet_context),
        structure(&trace.header)
    );
    if let Some(context) = &trace.context {
        let _ = write!(text, " event.context := {};", structure(context));
    }
    text += " };\n";
    for Event { id, context, payload } in &trace.events {
        let _ = write!(text, "event {{ name = e{id}; id = {id};");
        if let Some(context) = context {
            let _ = write!(text, " context := {};", structure(context));
        }
        let _ = writeln!(text, " fields := {}; }};", structure(payload));
    }
    text
}

/// Member names get the underscore that LTTng puts before them, but for those that mean something.
fn structure(class: &Struct) -> String {
    let mut text = "struct {".to_owned();
    for (name, class) in &class.members {
        let _ = write!(text, " {};", declared(class, name));
    }
    text += " }";
    if class.align > 1 {
        let _ = write!(text, " align({})", class.align);
    }
    text
}

fn declared(class: &Class, name: &str) -> String {
    match class {
        Class::Array(element, length) => declared(element, &format!("{name}[{length}]")),
        Class::Sequence(element, length) => declared(element, &format!("{name}[{length}]")),
        Class::Int(int) => format!("{} {name}", integer(*int)),
        Class::Enum(int, labels) => {
            let labels: Vec<_> =
                labels.iter().map(|(label, low, high)| format!("{label} = {low} ... {high}")).collect();
            format!("enum : {} {{ {} }} {name}", integer(*int), labels.join(", "))
        }
        Class::Float(size, align) => {
            let (exponent, mantissa) = if *size == 32 { (8, 24) } else { (11, 53) };
            format!(
                "floating_point {{ exp_dig = {exponent}; mant_dig = {mantissa}; align = {align}; }} {name}"
            )
        }
        Class::String => format!("string {name}"),
        Class::Struct(class) => format!("{} {name}", structure(class)),
        Class::Variant(tag, options) => {
            let options: Vec<_> =
                options.iter().map(|(option, class, _)| format!("{};", declared(class, option))).collect();
            format!("variant <{tag}> {{ {} }} {name}", options.join(" "))
        }
        Class::Variable(_) | Class::Optional(..) | Class::Blob(_) => unreachable!("CTF 1.8 has no {class:?}"),
    }
}

fn integer(int: Int) -> String {
    let map = if int.mark == Mark::Stamp { " map = clock.c.value;" } else { "" };
    let text = if int.mark == Mark::Text { " encoding = UTF8;" } else { "" };
    format!("integer {{ size = {}; align = {}; signed = {};{map}{text} }}", int.size, int.align, int.signed)
}

/// CTF 2 metadata.
pub fn json(trace: &Trace) -> String {
    let order = if trace.big { "big-endian" } else { "little-endian" };
    let scope = |class: &Struct| json_structure(class, order);
    let mut text = format!(
        "\x1e{{\"type\": \"preamble\", \"version\": 2}}\n\
         \x1e{{\"type\": \"trace-class\", \"packet-header-field-class\": {}}}\n\
         \x1e{{\"type\": \"clock-class\", \"id\": \"c\", \"frequency\": 1000000000}}\n\
         \x1e{{\"type\": \"data-stream-class\", \"default-clock-class-id\": \"c\", \"packet-context-field-class\": {}, \
         \"event-record-header-field-class\": {}",
        scope(&trace.packet_header),
        scope(&trace.packet_context),
        scope(&trace.header)
    );
    if let Some(context) = &trace.context {
        let _ = write!(text, ", \"event-record-common-context-field-class\": {}", scope(context));
    }
    text += "}\n";
    for Event { id, context, payload } in &trace.events {
        let _ = write!(text, "\x1e{{\"type\": \"event-record-class\", \"id\": {id}, \"name\": \"e{id}\"");
        if let Some(context) = context {
            let _ = write!(text, ", \"specific-context-field-class\": {}", scope(context));
        }
        let _ = writeln!(text, ", \"payload-field-class\": {}}}", scope(payload));
    }
    text
}

fn json_structure(class: &Struct, order: &str) -> String {
    let members: Vec<_> = class
        .members
        .iter()
        .map(|(name, class)| {
            format!("{{\"name\": \"{name}\", \"field-class\": {}}}", json_class(class, order))
        })
        .collect();
    format!(
        "{{\"type\": \"structure\", \"minimum-alignment\": {}, \"member-classes\": [{}]}}",
        class.align,
        members.join(", ")
    )
}

fn json_class(class: &Class, order: &str) -> String {
    match class {
        Class::Int(int) => json_integer(*int, order, ""),
        Class::Enum(int, labels) => {
            let labels: Vec<_> =
                labels.iter().map(|(label, low, high)| format!("\"{label}\": [[{low}, {high}]]")).collect();
            json_integer(*int, order, &format!(", \"mappings\": {{{}}}", labels.join(", ")))
        }
        Class::Float(size, align) => format!(
            "{{\"type\": \"fixed-length-floating-point-number\", \"length\": {size}, \"alignment\": {align}, \
             \"byte-order\": \"{order}\"}}"
        ),
        Class::String => "{\"type\": \"null-terminated-string\"}".to_owned(),
        Class::Variable(signed) => {
            format!("{{\"type\": \"variable-length-{}signed-integer\"}}", if *signed { "" } else { "un" })
        }
        Class::Optional(selector, (low, high), class) => format!(
            "{{\"type\": \"optional\", \"selector-field-location\": {{\"path\": [\"{selector}\"]}}, \
             \"selector-field-ranges\": [[{low}, {high}]], \"field-class\": {}}}",
            json_class(class, order)
        ),
        Class::Blob(length) => format!("{{\"type\": \"static-length-blob\", \"length\": {length}}}"),
        Class::Struct(class) => json_structure(class, order),
        Class::Array(element, length) if is_text(element) => {
            format!("{{\"type\": \"static-length-string\", \"length\": {length}}}")
        }
        Class::Sequence(element, length) if is_text(element) => format!(
            "{{\"type\": \"dynamic-length-string\", \"length-field-location\": {{\"path\": [\"{length}\"]}}}}"
        ),
        Class::Array(element, length) => format!(
            "{{\"type\": \"static-length-array\", \"length\": {length}, \"element-field-class\": {}}}",
            json_class(element, order)
        ),
        Class::Sequence(element, length) => format!(
            "{{\"type\": \"dynamic-length-array\", \"length-field-location\": {{\"path\": [\"{length}\"]}}, \
             \"element-field-class\": {}}}",
            json_class(element, order)
        ),
        Class::Variant(tag, options) => {
            let options: Vec<_> = options
                .iter()
                .map(|(option, class, (low, high))| {
                    format!(
                        "{{\"name\": \"{option}\", \"selector-field-ranges\": [[{low}, {high}]], \"field-class\": {}}}",
                        json_class(class, order)
                    )
                })
                .collect();
            format!(
                "{{\"type\": \"variant\", \"selector-field-location\": {{\"path\": [\"{tag}\"]}}, \"options\": [{}]}}",
                options.join(", ")
            )
        }
    }
}

fn is_text(element: &Class) -> bool {
    matches!(element, Class::Int(Int { mark: Mark::Text, .. }))
}

fn json_integer(int: Int, order: &str, mappings: &str) -> String {
    let sign = if int.signed { "signed" } else { "unsigned" };
    let role = match int.mark {
        Mark::None | Mark::Text => None,
        Mark::Magic => Some("packet-magic-number"),
        Mark::Stamp => Some("default-clock-timestamp"),
        Mark::Id => Some("event-record-class-id"),
        Mark::Content => Some("packet-content-length"),
        Mark::Packet => Some("packet-total-length"),
    };
    let roles = role.map_or(String::new(), |role| format!(", \"roles\": [\"{role}\"]"));
    format!(
        "{{\"type\": \"fixed-length-{sign}-integer\", \"length\": {}, \"alignment\": {}, \"byte-order\": \"{order}\"{mappings}{roles}}}",
        int.size, int.align
    )
}
