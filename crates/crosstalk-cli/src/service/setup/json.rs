//! One entry in JSON settings, which may have comments and trailing commas. Every other byte stays as it is: the text is read
//! into spans, and the change is a splice. A text that is read only in part is not changed.

use crate::failure::Failure;
use serde_json::{Map, Value};
use std::ops::Range;

/// No settings are nested deeper.
const MAX_DEPTH: usize = 200;

/// A value, and where it stands.
#[derive(Debug)]
struct Node {
    span: Range<usize>,
    value: Value,
    /// The members, where it is an object.
    members: Option<Vec<Member>>,
}

#[derive(Debug)]
struct Member {
    key: String,
    /// Where its key begins.
    start: usize,
    node: Node,
    /// The comma after it.
    comma: Option<usize>,
}

/// A fault of the text, and its place.
struct Unreadable {
    at: usize,
    what: &'static str,
}

type JsoncResult<T> = Result<T, Unreadable>;

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn fault<T>(&self, what: &'static str) -> JsoncResult<T> {
        Err(Unreadable { at: self.at, what })
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Leaves white space and comments behind.
    fn skip(&mut self) -> JsoncResult<()> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if let Some(comment) = trimmed.strip_prefix("/*") {
                match comment.find("*/") {
                    Some(end) => self.at += end + 4,
                    None => return self.fault("a comment has no end"),
                }
            } else {
                return Ok(());
            }
        }
    }

    fn eat(&mut self, c: char) -> bool {
        let is_there = self.rest().starts_with(c);
        if is_there {
            self.at += c.len_utf8();
        }
        is_there
    }

    /// Reads a string, a number or a word with the JSON reader itself, so that escapes mean what they mean.
    fn scalar(&mut self) -> JsoncResult<Value> {
        let rest = self.rest();
        let end = match rest.strip_prefix('"') {
            Some(inside) => {
                let mut is_escaped = false;
                let quote = inside.find(|c: char| {
                    let is_end = c == '"' && !is_escaped;
                    is_escaped = c == '\\' && !is_escaped;
                    is_end
                });
                match quote {
                    Some(quote) => quote + 2,
                    None => return self.fault("a text has no end"),
                }
            }
            None => rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')))
                .unwrap_or(rest.len()),
        };
        match serde_json::from_str(rest.get(..end).unwrap_or_default()) {
            Ok(value) => {
                self.at += end;
                Ok(value)
            }
            Err(_) => self.fault("this is no JSON value"),
        }
    }

    fn node(&mut self, depth: usize) -> JsoncResult<Node> {
        if depth > MAX_DEPTH {
            return self.fault("it is nested too deeply");
        }
        let start = self.at;
        let (value, members) = match self.peek() {
            Some('{') => {
                let members = self.object(depth)?;
                let values = members.iter();
                let values = values.map(|m| (m.key.clone(), m.node.value.clone()));
                (Value::Object(values.collect::<Map<_, _>>()), Some(members))
            }
            Some('[') => (self.array(depth)?, None),
            _ => (self.scalar()?, None),
        };
        Ok(Node {
            span: start..self.at,
            value,
            members,
        })
    }

    fn object(&mut self, depth: usize) -> JsoncResult<Vec<Member>> {
        self.eat('{');
        let mut members: Vec<Member> = Vec::new();
        loop {
            self.skip()?;
            if self.eat('}') {
                return Ok(members);
            }
            if members.last().is_some_and(|last| last.comma.is_none()) {
                return self.fault("a comma is missing");
            }
            let start = self.at;
            let Ok(Value::String(key)) = self.scalar() else {
                return self.fault("a name in quotes is missing");
            };
            if members.iter().any(|member| member.key == key) {
                return self.fault("a name is there twice");
            }
            self.skip()?;
            if !self.eat(':') {
                return self.fault("a colon is missing");
            }
            self.skip()?;
            let node = self.node(depth + 1)?;
            self.skip()?;
            let at = self.at;
            let comma = self.eat(',').then_some(at);
            members.push(Member {
                key,
                start,
                node,
                comma,
            });
        }
    }

    fn array(&mut self, depth: usize) -> JsoncResult<Value> {
        self.eat('[');
        let mut all = Vec::new();
        let mut needs_comma = false;
        loop {
            self.skip()?;
            if self.eat(']') {
                return Ok(Value::Array(all));
            }
            if needs_comma {
                return self.fault("a comma is missing");
            }
            all.push(self.node(depth + 1)?.value);
            self.skip()?;
            needs_comma = !self.eat(',');
        }
    }
}

impl Node {
    fn member(&self, key: &str) -> Option<&Member> {
        self.members.iter().flatten().find(|m| m.key == key)
    }
}

/// Reads a whole text.
fn read(text: &str) -> Result<Node, Failure> {
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let mut reader = Reader { text, at: start };
    let root = (|| {
        reader.skip()?;
        let root = reader.node(0)?;
        reader.skip()?;
        match reader.rest() {
            "" => Ok(root),
            _ => reader.fault("there is something after the end"),
        }
    })();
    let root = root.map_err(|fault| {
        let before = text.get(..fault.at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        malformed(&format!(
            "the settings can't be read, line {line}: {}",
            fault.what
        ))
    })?;
    match root.members {
        Some(_) => Ok(root),
        None => Err(malformed("the settings are no JSON object")),
    }
}

fn malformed(what: &str) -> Failure {
    Failure::malformed(what).help("nothing was changed; correct the file first")
}

/// The text with an entry at a path of two names: added, or replaced if it says something else.
pub(super) fn set(text: &str, [table, name]: [&str; 2], entry: &Value) -> Result<String, Failure> {
    if is_blank(text) {
        let all = serde_json::json!({table: {name: entry}});
        return Ok(format!("{}\n", pretty(&all, "")));
    }
    let root = read(text)?;
    let after = match root.member(table) {
        None => insert(text, &root, table, &serde_json::json!({name: entry})),
        Some(member) if member.node.members.is_none() => {
            return Err(malformed(&format!(
                "`{table}` in the settings is no object"
            )));
        }
        Some(member) => match member.node.member(name) {
            Some(known) if known.node.value == *entry => return Ok(text.to_owned()),
            Some(known) => {
                let entry = pretty(entry, indent_of(text, known.start));
                splice(text, known.node.span.clone(), &entry)
            }
            None => insert(text, &member.node, name, entry),
        },
    };
    // The new text is read again before it is kept.
    let is_there = read(&after)?
        .member(table)
        .and_then(|m| m.node.member(name))
        .is_some_and(|m| m.node.value == *entry);
    match is_there {
        true => Ok(after),
        false => Err(malformed(
            "the settings have a form that can't be changed safely",
        )),
    }
}

/// The text without an entry; without its table, too, if nothing else is in it.
pub(super) fn remove(text: &str, [table, name]: [&str; 2]) -> Result<String, Failure> {
    if is_blank(text) {
        return Ok(text.to_owned());
    }
    let root = read(text)?;
    let Some(member) = root.member(table) else {
        return Ok(text.to_owned());
    };
    let after = without(text, &member.node, name);
    if after == text {
        return Ok(after);
    }
    let emptied = read(&after)?;
    let Some(left) = emptied.member(table) else {
        return Ok(after);
    };
    let inside = after.get(left.node.span.clone()).unwrap_or_default();
    let is_empty = inside
        .trim_matches(['{', '}', ' ', '\t', '\n', '\r'])
        .is_empty();
    match is_empty {
        true => Ok(without(&after, &emptied, table)),
        false => Ok(after),
    }
}

fn is_blank(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim().is_empty()
}

fn splice(text: &str, span: Range<usize>, with: &str) -> String {
    let before = text.get(..span.start).unwrap_or_default();
    let after = text.get(span.end..).unwrap_or_default();
    format!("{before}{with}{after}")
}

/// The white space before a place, if nothing else stands before it in its line.
fn indent_of(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.get(line..).unwrap_or_default();
    let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
    line.get(..indent).unwrap_or_default()
}

/// Adds a member at the end of an object.
fn insert(text: &str, object: &Node, key: &str, value: &Value) -> String {
    let members = object.members.as_deref().unwrap_or_default();
    let outer = indent_of(text, object.span.start);
    let first = members.first().map(|m| m.start);
    let own_line = |at: usize| {
        let before = text.get(..at).unwrap_or_default();
        before.trim_end_matches([' ', '\t']).ends_with('\n')
    };
    let inner = match first.filter(|at| own_line(*at)) {
        Some(at) => indent_of(text, at).to_owned(),
        None if outer.contains('\t') => format!("{outer}\t"),
        None => format!("{outer}  "),
    };
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let close = object.span.end.saturating_sub(1);
    let inside = text.get(..close).unwrap_or_default();
    let content = inside.trim_end_matches([' ', '\t', '\n', '\r']).len();
    let ends_line = inside.get(content..).is_some_and(|gap| gap.contains('\n'));
    let body = pretty(value, &inner).replace('\n', newline);
    let key = Value::from(key).to_string();
    let mut entry = format!("{newline}{inner}{key}: {body}");
    if !ends_line {
        entry.push_str(newline);
        entry.push_str(outer);
    }
    let mut after = splice(text, content..content, &entry);
    if let Some(last) = members.last()
        && last.comma.is_none()
    {
        after = splice(&after, last.node.span.end..last.node.span.end, ",");
    }
    after
}

/// The text without a member of an object. Comments of its neighbours stay.
fn without(text: &str, object: &Node, key: &str) -> String {
    let members = object.members.as_deref().unwrap_or_default();
    let mut numbered = members.iter().enumerate();
    let Some((place, member)) = numbered.find(|(_, m)| m.key == key) else {
        return text.to_owned();
    };
    let end = member.comma.map_or(member.node.span.end, |comma| comma + 1);
    let before = text.get(..member.start).unwrap_or_default();
    let trimmed = before.trim_end_matches([' ', '\t']);
    // With its line, if it has one.
    let rest = text.get(end..).unwrap_or_default();
    let is_end_of_line = rest
        .trim_start_matches([' ', '\t'])
        .starts_with(['\n', '\r']);
    let start = match trimmed.strip_suffix('\n') {
        Some(line) if is_end_of_line => line.strip_suffix('\r').unwrap_or(line).len(),
        _ => member.start,
    };
    let mut after = splice(text, start..end, "");
    let before = place.checked_sub(1).and_then(|p| members.get(p));
    if let Some(comma) = before
        .and_then(|m| m.comma)
        .filter(|_| member.comma.is_none())
    {
        after = splice(&after, comma..comma + 1, "");
    }
    after
}

/// A value over several lines, each but the first after an indent.
fn pretty(value: &Value, indent: &str) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.replace('\n', &format!("\n{indent}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PATH: [&str; 2] = ["mcpServers", "crosstalk"];

    fn entry() -> Value {
        json!({"command": "/bin/crosstalk", "args": ["mcp"]})
    }

    const COMMENTS: [&str; 7] = [
        "// mine",
        "// one",
        "/* two */",
        "// keep",
        "// none yet",
        "// top",
        "// end",
    ];

    const TEXTS: [&str; 12] = [
        "{}",
        "{\n}\n",
        "{\n  // mine\n}\n",
        "{\"a\":1}",
        "{\n  \"a\": 1, // one\n  \"b\": [1, 2,], /* two */\n}\n",
        "{\n  \"mcpServers\": {}\n}\n",
        "{\n    \"mcpServers\": {\n        \"other\": {\"command\": \"x\"} // keep\n    },\n    \"z\": \"\\\"//\"\n}\n",
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"other\": 1,\r\n\t},\r\n}\r\n",
        "\u{feff}{\"a\": {\"mcpServers\": 3}}",
        "{\"mcpServers\":{\"other\":{}},\"x\":null}",
        "{\n  \"mcpServers\": {\n    // none yet\n  }\n}",
        "// top\n{ \"a\" : \"{\" }\n// end\n",
    ];

    #[test]
    fn an_entry_is_added_and_removed_and_the_rest_stays() {
        for text in TEXTS {
            let with = set(text, PATH, &entry()).unwrap();
            let node = read(&with).unwrap();
            let found = node.member(PATH[0]).and_then(|m| m.node.member(PATH[1]));
            assert_eq!(found.unwrap().node.value, entry(), "{with}");
            assert_eq!(set(&with, PATH, &entry()).unwrap(), with, "idempotent");
            // Every other value and every comment is there.
            for part in COMMENTS {
                assert_eq!(text.contains(part), with.contains(part), "{part}: {with}");
            }
            let mut value = node.value.clone();
            value[PATH[0]].as_object_mut().unwrap().remove(PATH[1]);
            let mut before = read(text).unwrap().value;
            if before.get(PATH[0]).is_none() {
                before[PATH[0]] = json!({});
            }
            assert_eq!(value, before, "{with}");
            let gone = remove(&with, PATH).unwrap();
            for part in COMMENTS {
                assert_eq!(text.contains(part), gone.contains(part), "{part}: {gone}");
            }
            assert!(
                read(&gone)
                    .unwrap()
                    .member(PATH[0])
                    .is_none_or(|m| m.node.member(PATH[1]).is_none())
            );
            assert_eq!(remove(&gone, PATH).unwrap(), gone);
        }
    }

    #[test]
    fn a_changed_entry_is_replaced_in_its_place() {
        let text = "{\n  \"mcpServers\": {\n    \"crosstalk\": {\"command\": \"old\"}, // mine\n    \"b\": 1\n  }\n}\n";
        let after = set(text, PATH, &entry()).unwrap();
        assert!(after.contains("}, // mine\n    \"b\": 1\n"), "{after}");
        assert!(!after.contains("old"));
    }

    #[test]
    fn settings_that_cant_be_read_are_left_alone() {
        for text in [
            "{",
            "[]",
            "3",
            "{\"a\" 1}",
            "{\"a\": 1 \"b\": 2}",
            "{} {}",
            "{'a': 1}",
            "{\"a\": tru}",
            "{\"mcpServers\": []}",
            "{\"a\": 1, \"a\": 2}",
            "{/* }",
            "{\"a\": \"}",
            "<<<<<<< HEAD\n{}",
        ] {
            assert!(set(text, PATH, &entry()).is_err(), "{text}");
        }
        assert_eq!(set("", PATH, &entry()).unwrap().lines().count(), 10);
        let deep = "[".repeat(100_000);
        assert!(set(&format!("{{\"a\": {deep}"), PATH, &entry()).is_err());
    }
}
