//! A case file: a head of `key: value` lines, then sections. `conformance/README.md` defines the format.

use std::collections::BTreeMap;

/// One case, checked for unknown keys and sections: a typo must not make a case pass.
#[derive(Debug)]
pub struct CaseFile {
    id: String,
    head: BTreeMap<String, String>,
    sections: Vec<(String, Vec<u8>)>,
}

/// The largest section that a case may describe: the largest input that a reader may be given is 64 MiB and one byte.
const MAX_SECTION_BYTES: usize = 80 << 20;

/// The form of each op: its name, optional keys, needed keys, and sections, of which a needed one is marked with `!`.
const FORMS: &str = "\
    parse | code line column repairs reports silent binding | reading expect | input! json
    canonical | expect code digest |  | input! canonical same differs
    fmt | fence |  | input! output!
    build | expect code |  | input! output
    address | code | expect | input! json schemes
    resolve | domain dnssec |  | input! names dns json!
    id |  | form | input!
    ids |  | form count |
    diagnose | lines after | diagnosis | input!
    integrity |  |  | input! json!
    migrate | output |  | input! json
    edit | add set |  | input! output!
    reply |  | reply | input! json!
    taxonomy |  |  | json!
    exit |  | reading exit | input!
    sign | with-key replace expect code | seed algorithm pkid at | input! output signed-bytes json
    verify | verdict body lines after trust by code at dnssec expect |  | input! trust key dns json verified restored
    key | expect code |  | input! json
    learn | at expect code |  | input! trust! after
    trust-file | expect code |  | input!
    rc1 |  | verdict | input! key
    hop | seed algorithm pkid | at by | input! output!
    check-hop | code | expect | input! key! json
    relays | private |  | input! dns json!
    collate | at poll expect code |  | input! json output
    consent | code at by proof before-proof leaves signed border authority | expect | input! before json
    audit |  | what result | input! json
    trace |  |  | input! key json!
    redact | as found only drop-signature expect code |  | input! names output
";

/// The name of an op, its optional and needed keys, and its sections.
fn forms() -> impl Iterator<Item = [&'static str; 4]> {
    FORMS.lines().filter_map(|line| {
        let mut parts = line.split('|').map(str::trim);
        Some([parts.next()?, parts.next()?, parts.next()?, parts.next()?])
    })
}

/// The names of all ops.
pub fn ops() -> impl Iterator<Item = &'static str> {
    forms().map(|[op, ..]| op)
}

impl CaseFile {
    /// Reads a case file. Its id is the folder and the name, without `.case`.
    ///
    /// ```
    /// use crosstalk_conform::CaseFile;
    /// let file = b"rule: IDS-001\nabout: A ULID.\nop: id\nform: ulid\n=== input\n01K74V6R0074G0T7MAHPXVDNXW\n";
    /// let case = CaseFile::parse("ids/ulid", file).unwrap();
    /// assert_eq!((case.area(), case.op(), case.get("form")), ("ids", "id", "ulid"));
    /// ```
    ///
    /// # Errors
    /// The fault of the file.
    pub fn parse(id: &str, bytes: &[u8]) -> Result<Self, String> {
        let mut case = Self::split(id, bytes)?;
        case.check()?;
        case.unescape()?;
        Ok(case)
    }

    /// Reads the head alone: the level of a case is known before its input, which may have 64 MiB, is built.
    ///
    /// # Errors
    /// The fault of the file.
    pub fn parse_head(id: &str, bytes: &[u8]) -> Result<Self, String> {
        let mut case = Self::split(id, bytes)?;
        case.sections.clear();
        Ok(case)
    }

    fn split(id: &str, bytes: &[u8]) -> Result<Self, String> {
        let mut case = Self {
            id: id.to_owned(),
            head: BTreeMap::new(),
            sections: Vec::new(),
        };
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            if let Some(title) = line.strip_prefix(b"=== ") {
                let title = text(title)?.trim_end().to_owned();
                case.sections.push((title, Vec::new()));
            } else if let Some((_, content)) = case.sections.last_mut() {
                content.extend_from_slice(line);
            } else {
                let line = text(line)?.trim_end_matches('\n');
                let (key, value) = line
                    .split_once(':')
                    .ok_or(format!("the head has the line `{line}`"))?;
                let twice = case.head.insert(key.into(), value.trim().into());
                if twice.is_some() {
                    return Err(format!("the key `{key}` appears twice"));
                }
            }
        }
        Ok(case)
    }

    fn check(&self) -> Result<(), String> {
        for key in ["rule", "about", "op"] {
            if self.get(key).is_empty() {
                return Err(format!("the key `{key}` is missing"));
            }
        }
        let [op, optional, needed, sections] = forms()
            .find(|[op, ..]| *op == self.op())
            .ok_or(format!("the op `{}` is unknown", self.op()))?;
        let common = "rule about op encoding escaped";
        let known = |key: &str| {
            [common, optional, needed]
                .iter()
                .any(|l| l.split(' ').any(|k| k == key))
        };
        if let Some(key) = self.head.keys().find(|k| !known(k)) {
            return Err(format!("`{op}` has no key `{key}`"));
        }
        let lacks = |key: &&str| !key.is_empty() && !self.head.contains_key(*key);
        if let Some(key) = needed.split(' ').find(lacks) {
            return Err(format!("`{op}` needs the key `{key}`"));
        }
        let titles: Vec<&str> = sections
            .split(' ')
            .map(|s| s.trim_end_matches('!'))
            .collect();
        for (index, (title, _)) in self.sections.iter().enumerate() {
            if !titles.contains(&title.as_str()) {
                return Err(format!("`{op}` has no section `{title}`"));
            }
            let mut before = self.sections.iter().take(index);
            let again = before.any(|(t, _)| t == title);
            if again && !matches!(title.as_str(), "same" | "differs") {
                return Err(format!("the section `{title}` appears twice"));
            }
        }
        let must = sections.split(' ').filter_map(|s| s.strip_suffix('!'));
        for title in must {
            self.section(title)?;
        }
        for (key, values) in [
            ("encoding", "escaped"),
            ("expect", "accept reject mixed"),
            ("reading", "strict paste"),
            ("binding", "one"),
            ("fence", "yes"),
            ("output", "same"),
            ("with-key", "yes"),
            ("replace", "yes"),
            ("as", "envelope"),
            ("drop-signature", "yes"),
            ("dnssec", "required"),
            ("algorithm", "ed25519 secp256r1"),
            (
                "trust",
                "dns pinned did given first-contact unsigned unknown-key none",
            ),
            ("body", "intact reflowed truncated altered none"),
        ] {
            let value = self.get(key);
            if self.head.contains_key(key) && !values.split(' ').any(|v| v == value) {
                return Err(format!("`{value}` is no value of `{key}`"));
            }
        }
        if self.get("expect") == "reject" && self.get("code").is_empty() {
            return Err("a rejection needs the key `code`".into());
        }
        if self.op() == "redact" && (self.get("expect") == "reject") == self.has("found") {
            return Err("`redact` needs the key `found`, or `expect: reject`".into());
        }
        if self.op() == "verify" && (self.get("expect") == "reject") == self.has("verdict") {
            return Err("`verify` needs the key `verdict`, or `expect: reject`".into());
        }
        Ok(())
    }

    /// Resolves the escapes of the input, and of the sections that `escaped` names.
    fn unescape(&mut self) -> Result<(), String> {
        let mut titles: Vec<String> = self.words("escaped").map(str::to_owned).collect();
        for title in &titles {
            self.section(title)?;
        }
        if self.head.contains_key("encoding") {
            titles.push("input".into());
        }
        for (title, content) in &mut self.sections {
            if titles.contains(title) {
                *content = unescaped(text(content)?)?;
            }
        }
        Ok(())
    }

    /// The folder and the name: `env/arrow-ascii`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The folder: `env`.
    pub fn area(&self) -> &str {
        self.id.split_once('/').map_or("", |(area, _)| area)
    }

    /// The operation that the case asks for.
    pub fn op(&self) -> &str {
        self.get("op")
    }

    /// The id of the rule that the case is about.
    pub fn rule(&self) -> &str {
        self.get("rule")
    }

    /// One sentence that says what the case shows.
    pub fn about(&self) -> &str {
        self.get("about")
    }

    /// The keys of the head, with their values.
    pub fn head(&self) -> &BTreeMap<String, String> {
        &self.head
    }

    /// The value of a key; empty if the case does not have the key.
    pub fn get(&self, key: &str) -> &str {
        self.head.get(key).map_or("", String::as_str)
    }

    /// Whether the case has a key.
    pub fn has(&self, key: &str) -> bool {
        self.head.contains_key(key)
    }

    /// The words in the value of a key.
    pub fn words(&self, key: &str) -> impl Iterator<Item = &str> {
        self.get(key).split(' ').filter(|w| !w.is_empty())
    }

    pub(crate) fn number(&self, key: &str) -> Result<usize, String> {
        let value = self.get(key);
        value
            .parse()
            .map_err(|_| format!("`{key}: {value}` is not a number"))
    }

    /// The first section with this title, with its escapes resolved.
    ///
    /// # Errors
    /// The case has no such section.
    pub fn section(&self, title: &str) -> Result<&[u8], String> {
        self.optional(title)
            .ok_or(format!("the section `{title}` is missing"))
    }

    /// The first section with this title, if there is one.
    pub(crate) fn optional(&self, title: &str) -> Option<&[u8]> {
        self.all(title).next()
    }

    /// Every section with this title, with its escapes resolved.
    pub fn all<'c>(&'c self, title: &str) -> impl Iterator<Item = &'c [u8]> {
        self.sections
            .iter()
            .filter(move |(t, _)| t == title)
            .map(|(_, content)| content.as_slice())
    }

    pub(crate) fn json(&self, title: &str) -> Result<serde_json::Value, String> {
        serde_json::from_slice(self.section(title)?).map_err(|e| format!("section `{title}`: {e}"))
    }

    /// The JSON of a section, if there is one.
    pub(crate) fn optional_json(&self, title: &str) -> Result<Option<serde_json::Value>, String> {
        match self.optional(title) {
            Some(_) => self.json(title).map(Some),
            None => Ok(None),
        }
    }
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|e| e.to_string())
}

/// Removes the line ends, then resolves the escapes.
fn unescaped(text: &str) -> Result<Vec<u8>, String> {
    let joined = text.replace('\n', "");
    let (mut out, mut rest) = (Vec::new(), joined.as_str());
    while let Some(at) = rest.find('\\') {
        let (plain, escapes) = rest.split_at(at);
        out.extend_from_slice(plain.as_bytes());
        rest = match escapes.strip_prefix("\\*{") {
            Some(repeat) => repeated(repeat, &mut out)?,
            None => escape(escapes, &mut out)?,
        };
        if out.len() > MAX_SECTION_BYTES {
            return Err(format!("it has more than {MAX_SECTION_BYTES} bytes"));
        }
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// `N}{text}`: the text N times.
fn repeated<'t>(text: &'t str, out: &mut Vec<u8>) -> Result<&'t str, String> {
    let broken = || format!("a repetition is \\*{{N}}{{text}}, not `{:.20}`", text);
    let (count, mut rest) = text.split_once("}{").ok_or_else(broken)?;
    let count: usize = count.parse().map_err(|_| broken())?;
    let mut once = Vec::new();
    loop {
        let at = rest.find(['\\', '}']).ok_or_else(broken)?;
        let (plain, behind) = rest.split_at(at);
        once.extend_from_slice(plain.as_bytes());
        if let Some(after) = behind.strip_prefix('}') {
            if once.len().saturating_mul(count) > MAX_SECTION_BYTES {
                return Err(format!("it has more than {MAX_SECTION_BYTES} bytes"));
            }
            out.extend(once.repeat(count));
            return Ok(after);
        }
        rest = escape(behind, &mut once)?;
    }
}

/// One escape at the start of the text.
fn escape<'t>(text: &'t str, out: &mut Vec<u8>) -> Result<&'t str, String> {
    let broken = || format!("there is no escape `{:.10}`", text);
    let hex = |digits: &str| u32::from_str_radix(digits, 16).map_err(|_| broken());
    let kind = *text.as_bytes().get(1).ok_or_else(broken)?;
    let rest = text.get(2..).ok_or_else(broken)?;
    match kind {
        b'n' => out.push(b'\n'),
        b'r' => out.push(b'\r'),
        b't' => out.push(b'\t'),
        b'\\' | b'}' => out.push(kind),
        b'x' => {
            let (digits, after) = rest.split_at_checked(2).ok_or_else(broken)?;
            out.push(u8::try_from(hex(digits)?).map_err(|_| broken())?);
            return Ok(after);
        }
        b'u' => {
            let (digits, after) = rest
                .strip_prefix('{')
                .and_then(|r| r.split_once('}'))
                .ok_or_else(broken)?;
            let c = char::from_u32(hex(digits)?).ok_or_else(broken)?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(after);
        }
        _ => return Err(broken()),
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_an_error() {
        let good = "rule: ENV-001\nabout: x\nop: id\nform: ulid\n=== input\nx\n";
        assert!(CaseFile::parse("x", good.as_bytes()).is_ok());
        for (from, to) in [
            ("form:", "from:"),
            ("form:", "form: ulid\nform:"),
            ("op: id", "op: idd"),
            ("=== input", "=== inputs"),
            ("about: x", "about:"),
            ("about: x\n", "about: x\n\n"),
            ("=== input\nx\n", ""),
            ("form:", "encoding: base64\nform:"),
        ] {
            let bad = good.replace(from, to);
            assert!(CaseFile::parse("x", bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn escapes_are_resolved() {
        let resolved = unescaped("a\\n\n\\x00\\xff\\u{e9}\\\\\\*{3}{b\\u{41}\\}}c").unwrap();
        assert_eq!(resolved, b"a\n\x00\xff\xc3\xa9\\bA}bA}bA}c");
        for bad in ["\\q", "\\x0", "\\u{110000}", "\\*{x}{y}", "\\*{2}{y", "\\"] {
            assert!(unescaped(bad).is_err(), "{bad}");
        }
    }
}
