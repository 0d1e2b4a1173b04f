//! The Rust source that is generated from the registry.

use super::{
    Errors, Intent, Intents, Keys, Namespaces, NationalNumber, Redactions, Rule, Schemes, read,
    rules,
};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// `E-TOO-LARGE` → `TooLarge`, `REQUEST` → `Request`, `error-code` → `ErrorCode`.
fn camel(text: &str) -> String {
    text.split(['-', '_'])
        .map(|word| {
            let mut chars = word.chars();
            let first = chars.next().map(|c| c.to_ascii_uppercase());
            first
                .into_iter()
                .chain(chars.map(|c| c.to_ascii_lowercase()))
                .collect::<String>()
        })
        .collect()
}

/// The generated source, formatted by rustfmt.
pub fn source(root: &Path) -> io::Result<String> {
    let mut out = String::from(
        "// Generated from spec/registry/*.toml by `cargo xtask generate`. Change it there.\n\n\
         use super::{CardIssuer, MetaKey, Namespace, NationalNumber, Rule, Scheme, SchemeForm, SchemeKind, ValueKind};\n\n",
    );
    let errors: Errors = read(root, "errors.toml")?;
    enumeration(
        &mut out,
        "ErrorCode",
        "A code of the error taxonomy (ERR-001).",
        errors
            .error
            .iter()
            .map(|e| (e.name.as_str(), e.code.as_str(), e.summary.as_str())),
    );
    numbers(&mut out, &errors);

    let intents: Intents = read(root, "intents.toml")?;
    let names: Vec<String> = intents.intent.iter().map(|i| camel(&i.name)).collect();
    enumeration(
        &mut out,
        "Intent",
        "A core intent (INT-001).",
        intents
            .intent
            .iter()
            .zip(&names)
            .map(|(i, name)| (name.as_str(), i.name.as_str(), i.summary.as_str())),
    );
    intent_predicates(&mut out, &intents);
    let keys: Keys = read(root, "keys.toml")?;
    out.push_str("/// Public keys that vouch for nobody, and why (MET-023).\npub static DENIED_KEYS: &[(&str, &str)] = &[\n");
    for denied in &keys.denied {
        let _ = writeln!(out, "({:?}, {:?}),", denied.key, denied.reason);
    }
    out.push_str("];\n\n");
    out.push_str("/// The legacy intents and the core ones that they mean (INT-002).\npub static LEGACY_INTENTS: &[(&str, Intent)] = &[\n");
    for legacy in &intents.legacy {
        let _ = writeln!(
            out,
            "({:?}, Intent::{}),",
            legacy.name,
            camel(&legacy.meaning)
        );
    }
    out.push_str("];\n\n");
    schemes(&mut out, &read(root, "schemes.toml")?);
    namespaces(&mut out, &read(root, "namespaces.toml")?);
    redactions(&mut out, &read(root, "redactions.toml")?);
    let mut out = rustfmt(root, &out)?;
    rule_table(&mut out, &rules(root)?);
    Ok(out)
}

fn enumeration<'a>(
    out: &mut String,
    name: &str,
    doc: &str,
    variants: impl Iterator<Item = (&'a str, &'a str, &'a str)> + Clone,
) {
    let _ = writeln!(
        out,
        "/// {doc}\n#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]\npub enum {name} {{"
    );
    for (variant, spelling, summary) in variants.clone() {
        let _ = writeln!(out, "/// `{spelling}`: {summary}.\n{variant},");
    }
    let _ = writeln!(
        out,
        "}}\n\nimpl {name} {{\n/// All of them, in the order of the registry.\npub const ALL: &'static [Self] = &["
    );
    for (variant, ..) in variants.clone() {
        let _ = writeln!(out, "Self::{variant},");
    }
    out.push_str(
        "];\n\n/// The spelling on the wire.\npub const fn as_str(self) -> &'static str {\nmatch self {\n",
    );
    for (variant, spelling, _) in variants.clone() {
        let _ = writeln!(out, "Self::{variant} => {spelling:?},");
    }
    out.push_str("}\n}\n\n/// What it means, in a few words.\npub const fn summary(self) -> &'static str {\nmatch self {\n");
    for (variant, _, summary) in variants.clone() {
        let _ = writeln!(out, "Self::{variant} => {summary:?},");
    }
    out.push_str("}\n}\n\n/// The one with this exact spelling.\npub fn from_wire(text: &str) -> Option<Self> {\nmatch text {\n");
    for (variant, spelling, _) in variants {
        let _ = writeln!(out, "{spelling:?} => Some(Self::{variant}),");
    }
    let _ = writeln!(
        out,
        "_ => None,\n}}\n}}\n}}\n\nimpl std::fmt::Display for {name} {{\n\
         fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {{\nf.write_str(self.as_str())\n}}\n}}\n"
    );
}

fn numbers(out: &mut String, errors: &Errors) {
    out.push_str("impl ErrorCode {\n");
    for (function, doc, kind) in [
        ("http_status", "The HTTP status of the binding.", "u16"),
        ("exit_code", "The exit code of the command line.", "u8"),
    ] {
        let _ = writeln!(
            out,
            "/// {doc}\npub const fn {function}(self) -> {kind} {{\nmatch self {{"
        );
        for error in &errors.error {
            let number = if kind == "u16" {
                error.http.to_string()
            } else {
                error.exit.to_string()
            };
            let _ = writeln!(out, "Self::{} => {number},", error.name);
        }
        out.push_str("}\n}\n\n");
    }
    out.push_str("}\n\n");
}

fn intent_predicates(out: &mut String, intents: &Intents) {
    type Column = fn(&Intent) -> bool;
    let columns: [(&str, &str, Column); 3] = [
        ("asks", "Whether its sender waits for an answer.", |i| {
            i.asks
        }),
        ("answers", "Whether it answers another message.", |i| {
            i.answers
        }),
        (
            "needs_parent",
            "Whether it has to name the message that it answers, once it has an id of its own (INT-010).",
            |i| i.needs_parent,
        ),
    ];
    out.push_str("impl Intent {\n");
    for (function, doc, is_set) in columns {
        let named = intents.intent.iter().filter(|i| is_set(i));
        let named: Vec<String> = named.map(|i| format!("Self::{}", camel(&i.name))).collect();
        let _ = writeln!(
            out,
            "/// {doc}\npub const fn {function}(self) -> bool {{\nmatches!(self, {})\n}}\n",
            named.join(" | ")
        );
    }
    out.push_str("}\n\n");
}

fn schemes(out: &mut String, schemes: &Schemes) {
    out.push_str("/// The address schemes of the registry.\npub static SCHEMES: &[Scheme] = &[\n");
    for s in &schemes.scheme {
        let _ = writeln!(
            out,
            "Scheme {{ name: {:?}, form: SchemeForm::{}, kind: SchemeKind::{}, summary: {:?} }},",
            s.name,
            camel(&s.form),
            camel(&s.kind),
            s.summary
        );
    }
    out.push_str("];\n\n");
}

fn namespaces(out: &mut String, namespaces: &Namespaces) {
    out.push_str(
        "/// The META namespaces of the registry.\npub static NAMESPACES: &[Namespace] = &[\n",
    );
    for n in &namespaces.namespace {
        let numbered = n.numbered.as_ref().map_or("None".to_owned(), |x| {
            format!("Some(({:?}, ValueKind::{}))", x.prefix, camel(&x.r#type))
        });
        let _ = writeln!(
            out,
            "Namespace {{ name: {:?}, summary: {:?}, repeats: {}, hop: {}, numbered: {numbered}, keys: &[",
            n.name, n.summary, n.repeats, n.hop
        );
        for k in &n.keys {
            let _ = writeln!(
                out,
                "MetaKey {{ name: {:?}, kind: ValueKind::{}, values: &{:?}, hop: {} }},",
                k.name,
                camel(&k.r#type),
                k.values,
                k.hop
            );
        }
        out.push_str("] },\n");
    }
    out.push_str("];\n\n");
    for key in namespaces.namespace.iter().flat_map(|n| &n.keys) {
        if let Some((name, doc)) = &key.r#enum {
            words(out, name, doc, &key.values);
        }
    }
}

/// An enum of the words that a META key may have.
fn words(out: &mut String, name: &str, doc: &str, values: &[String]) {
    let _ = writeln!(
        out,
        "/// {doc}\n#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]\npub enum {name} {{"
    );
    for word in values {
        let _ = writeln!(out, "/// `{word}`\n{},", camel(word));
    }
    let all: Vec<String> = values
        .iter()
        .map(|w| format!("Self::{}", camel(w)))
        .collect();
    let _ = writeln!(
        out,
        "}}\n\nimpl {name} {{\n/// All of them, in the order of the registry.\npub const ALL: [Self; {}] = [{}];\n\n\
         /// The word on the wire.\npub const fn as_str(self) -> &'static str {{\nmatch self {{",
        values.len(),
        all.join(", ")
    );
    for word in values {
        let _ = writeln!(out, "Self::{} => {word:?},", camel(word));
    }
    out.push_str(
        "}\n}\n\n/// The one with this exact word.\npub fn from_wire(word: &str) -> Option<Self> {\n\
         Self::ALL.into_iter().find(|w| w.as_str() == word)\n}\n}\n\n",
    );
}

fn redactions(out: &mut String, redactions: &Redactions) {
    let names: Vec<String> = redactions.kind.iter().map(|k| camel(&k.name)).collect();
    enumeration(
        out,
        "PiiKind",
        "A kind of personal data that a redaction takes out (RED-001), the strongest first.",
        redactions
            .kind
            .iter()
            .zip(&names)
            .map(|(k, name)| (name.as_str(), k.name.as_str(), k.summary.as_str())),
    );
    out.push_str(
        "impl PiiKind {\n/// Its replacement; each `#` is a digit that is kept.\npub const fn placeholder(self) -> &'static str {\nmatch self {\n",
    );
    for (kind, name) in redactions.kind.iter().zip(&names) {
        let _ = writeln!(out, "Self::{name} => {:?},", kind.placeholder);
    }
    out.push_str("}\n}\n}\n\n");
    for (name, doc, list) in [
        (
            "KEPT_NAMESPACES",
            "The META namespaces that no redaction changes (RED-022).",
            &redactions.kept.namespaces,
        ),
        (
            "KEPT_KEYS",
            "The META keys of free text that no redaction changes (RED-022).",
            &redactions.kept.keys,
        ),
    ] {
        let _ = writeln!(out, "/// {doc}\npub static {name}: &[&str] = &{list:?};\n");
    }
    for (name, doc, list) in [
        (
            "PHONE_LABELS",
            "Words directly before a number that make it a phone number (RED-011).",
            &redactions.phone.labels,
        ),
        (
            "VERSION_WORDS",
            "Words before a dotted quad that make it a version or a section (RED-014).",
            &redactions.ip.words,
        ),
        (
            "IBAN_LENGTHS",
            "Each country code with the length of its account numbers (RED-013).",
            &redactions.iban.lengths,
        ),
    ] {
        let _ = writeln!(out, "/// {doc}\npub static {name}: &[&str] = &{list:?};\n");
    }
    for (name, doc, distance) in [
        ("LABEL_BEFORE", "before", redactions.label.before),
        ("LABEL_BEHIND", "behind", redactions.label.behind),
    ] {
        let _ = writeln!(
            out,
            "/// How many symbols {doc} a number a label may reach (RED-005).\npub const {name}: usize = {distance};\n"
        );
    }
    out.push_str("/// The issuers of payment cards (RED-012).\npub static CARD_ISSUERS: &[CardIssuer] = &[\n");
    for issuer in &redactions.card.issuers {
        let (fewest, most) = issuer.lengths;
        let _ = writeln!(
            out,
            "CardIssuer {{ name: {:?}, first: {}, last: {}, lengths: {fewest}..={most} }},",
            issuer.name, issuer.first, issuer.last
        );
    }
    out.push_str("];\n\n");
    national_numbers(out, &redactions.national);
}

fn national_numbers(out: &mut String, numbers: &[NationalNumber]) {
    out.push_str(
        "/// How the check digits of a national number are computed (RED-015).\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum NationalCheck {\n",
    );
    for number in numbers {
        let (name, check) = (&number.name, camel(&number.check));
        let _ = writeln!(out, "/// {}: {name}.\n{check},", number.country);
    }
    out.push_str("}\n\n/// The national numbers of people (RED-015).\npub static NATIONAL_NUMBERS: &[NationalNumber] = &[\n");
    for number in numbers {
        let weights: Vec<String> = number.weights.iter().map(|w| format!("&{w:?}")).collect();
        let _ = writeln!(
            out,
            "NationalNumber {{ check: NationalCheck::{}, weights: &[{}], alphabets: &{:?}, forms: &{:?}, labelled: &{:?}, labels: &{:?} }},",
            camel(&number.check),
            weights.join(", "),
            number.alphabets,
            number.forms,
            number.labelled,
            number.labels
        );
    }
    out.push_str("];\n\n");
}

/// The table of rules, one per line, and a constant for each that has a name.
fn rule_table(out: &mut String, rules: &[Rule]) {
    let _ = writeln!(
        out,
        "\n/// The numbered rules of `spec/`. Those that code refers to have a constant.\npub mod rule {{\n    \
         use super::{{ErrorCode, Rule}};\n\n    /// All of them, in the order of the registry.\n    \
         pub static ALL: &[Rule] = &TABLE;\n\n    static TABLE: [Rule; {}] = [",
        rules.len()
    );
    for r in rules {
        let code = r.code.as_ref().map_or("None".to_owned(), |c| {
            format!("Some(ErrorCode::{})", camel(c.trim_start_matches("E-")))
        });
        let _ = writeln!(
            out,
            "        Rule {{ id: {:?}, code: {code}, title: {:?}, help: {:?}, drops: {} }},",
            r.id,
            r.title,
            r.help.as_deref().unwrap_or(""),
            r.drops
        );
    }
    out.push_str("    ];\n");
    for (index, r) in rules.iter().enumerate() {
        let Some(name) = &r.name else { continue };
        let title = ['[', ']', '<'].iter().fold(r.title.clone(), |title, c| {
            title.replace(*c, &format!("\\{c}"))
        });
        let _ = writeln!(
            out,
            "\n    /// {}: {title}.\n    pub const {name}: Rule = TABLE[{index}];",
            r.id
        );
    }
    out.push_str("}\n");
}

fn rustfmt(root: &Path, source: &str) -> io::Result<String> {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| io::Error::new(e.kind(), format!("rustfmt: {e}")))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(source.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(io::Error::other("rustfmt refused the generated source"));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}
