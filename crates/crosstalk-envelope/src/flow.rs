//! Values that hold a list or a map on one line: a flow of YAML or JSON (MET-001).
//!
//! Read without recursion, at most [`MAX_DEPTH`] levels deep.

/// How deep a flow may be nested.
pub const MAX_DEPTH: usize = 16;

/// A value of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flow {
    /// A text, quoted or not.
    Text(String),
    /// `[a, b]`
    List(Vec<Flow>),
    /// `{a: 1, b: 2}`
    Map(Vec<(String, Flow)>),
}

/// Why a value that begins like a flow is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowError {
    /// A bracket, brace or quote is not closed.
    Open,
    /// Something stands where it can't.
    Unexpected,
    /// Nested deeper than [`MAX_DEPTH`].
    Deep,
}

impl FlowError {
    /// The fault as a sentence.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "a bracket or a quote is not closed",
            Self::Unexpected => "there is something where a flow can't have it",
            Self::Deep => "the flow is nested too deep",
        }
    }
}

/// A list or map that is still open.
enum OpenFlow {
    List(Vec<Flow>),
    Map(Vec<(String, Flow)>, Option<String>),
}

impl Flow {
    /// Whether a value means to be a flow.
    pub fn is_meant(value: &str) -> bool {
        value.starts_with('[') || value.starts_with('{')
    }

    /// Reads a value. Anything but a list or a map is a text, kept as it is.
    ///
    /// # Errors
    /// A [`FlowError`] if the value begins like a list or a map and is none.
    ///
    /// ```
    /// use crosstalk_envelope::flow::Flow;
    /// let flow = Flow::parse(r#"["claude://session/a", 'b', c]"#).unwrap();
    /// assert_eq!(flow.texts(), ["claude://session/a", "b", "c"]);
    /// assert!(Flow::parse("[a, b").is_err());
    /// ```
    pub fn parse(value: &str) -> Result<Self, FlowError> {
        if !Self::is_meant(value) {
            return Ok(Self::Text(value.to_owned()));
        }
        Parser {
            rest: value,
            stack: Vec::new(),
            wants_value: true,
        }
        .run()
    }

    /// The texts of a list, or the text alone; nested values are left out.
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Self::Text(text) => vec![text],
            Self::List(items) => items
                .iter()
                .filter_map(|i| {
                    if let Self::Text(t) = i {
                        Some(t.as_str())
                    } else {
                        None
                    }
                })
                .collect(),
            Self::Map(_) => Vec::new(),
        }
    }
}

struct Parser<'v> {
    rest: &'v str,
    stack: Vec<OpenFlow>,
    /// A value may come next (else a comma or a closing bracket must).
    wants_value: bool,
}

impl Parser<'_> {
    fn run(mut self) -> Result<Flow, FlowError> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            let Some(c) = self.rest.chars().next() else {
                return Err(FlowError::Open);
            };
            let done = match c {
                '[' | '{' => {
                    self.open(c)?;
                    None
                }
                ']' | '}' => self.close(c)?,
                ',' => {
                    self.comma()?;
                    None
                }
                _ => {
                    let text = self.scalar(c)?;
                    self.take(text)?;
                    None
                }
            };
            if let Some(flow) = done {
                let clean = self.rest.trim_matches([' ', '\t']).is_empty();
                return if clean {
                    Ok(flow)
                } else {
                    Err(FlowError::Unexpected)
                };
            }
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or("");
    }

    fn open(&mut self, c: char) -> Result<(), FlowError> {
        let key_missing = matches!(self.stack.last(), Some(OpenFlow::Map(_, None)));
        if !self.wants_value || key_missing {
            return Err(FlowError::Unexpected);
        }
        if self.stack.len() == MAX_DEPTH {
            return Err(FlowError::Deep);
        }
        self.skip(1);
        self.stack.push(if c == '[' {
            OpenFlow::List(Vec::new())
        } else {
            OpenFlow::Map(Vec::new(), None)
        });
        Ok(())
    }

    /// Closes the innermost frame; the outermost gives the result.
    fn close(&mut self, c: char) -> Result<Option<Flow>, FlowError> {
        let flow = match (self.stack.pop(), c) {
            (Some(OpenFlow::List(items)), ']') => Flow::List(items),
            (Some(OpenFlow::Map(pairs, None)), '}') => Flow::Map(pairs),
            _ => return Err(FlowError::Unexpected),
        };
        self.skip(1);
        if self.stack.is_empty() {
            return Ok(Some(flow));
        }
        self.put(flow)?;
        Ok(None)
    }

    fn comma(&mut self) -> Result<(), FlowError> {
        if self.wants_value {
            return Err(FlowError::Unexpected);
        }
        self.skip(1);
        self.wants_value = true;
        Ok(())
    }

    /// A quoted or plain text, with its end removed from the rest.
    fn scalar(&mut self, first: char) -> Result<String, FlowError> {
        if first != '"' && first != '\'' {
            return Ok(self.plain());
        }
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if c == first {
                if first == '\'' && chars.peek().is_some_and(|(_, n)| *n == '\'') {
                    chars.next();
                    text.push('\'');
                    continue;
                }
                self.skip(at + 1);
                return Ok(text);
            }
            if c == '\\' && first == '"' {
                let (_, escaped) = chars.next().ok_or(FlowError::Open)?;
                text.push(match escaped {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'u' => unicode_escape(chars.by_ref().map(|(_, c)| c))?,
                    '"' | '\\' | '/' => escaped,
                    _ => return Err(FlowError::Unexpected),
                });
            } else {
                text.push(c);
            }
        }
        Err(FlowError::Open)
    }

    /// A plain text ends at a comma or a bracket; in a map, a colon and a space end the key.
    fn plain(&mut self) -> String {
        let in_key = matches!(self.stack.last(), Some(OpenFlow::Map(_, None)));
        let bytes = self.rest.as_bytes();
        let end = bytes
            .iter()
            .enumerate()
            .position(|(i, b)| match b {
                b',' | b'[' | b']' | b'{' | b'}' => true,
                b':' if in_key => matches!(bytes.get(i + 1), None | Some(b' ' | b'\t')),
                _ => false,
            })
            .unwrap_or(bytes.len());
        let text = self
            .rest
            .get(..end)
            .unwrap_or("")
            .trim_end_matches([' ', '\t'])
            .to_owned();
        self.skip(end);
        text
    }

    /// Takes a text as the key of a map or as a value.
    fn take(&mut self, text: String) -> Result<(), FlowError> {
        if !self.wants_value {
            return Err(FlowError::Unexpected);
        }
        if let Some(OpenFlow::Map(_, key @ None)) = self.stack.last_mut() {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            self.rest = self.rest.strip_prefix(':').ok_or(FlowError::Unexpected)?;
            *key = Some(text);
            return Ok(());
        }
        self.put(Flow::Text(text))
    }

    fn put(&mut self, flow: Flow) -> Result<(), FlowError> {
        match self.stack.last_mut() {
            Some(OpenFlow::List(items)) => items.push(flow),
            Some(OpenFlow::Map(pairs, key)) => {
                pairs.push((key.take().ok_or(FlowError::Unexpected)?, flow))
            }
            None => return Err(FlowError::Unexpected),
        }
        self.wants_value = false;
        Ok(())
    }
}

/// The character of a `u` escape with four hex digits, or of a surrogate pair, behind the `u`.
fn unicode_escape(mut chars: impl Iterator<Item = char>) -> Result<char, FlowError> {
    let mut unit = |skip: usize| {
        let hex: String = chars.by_ref().skip(skip).take(4).collect();
        u16::from_str_radix(&hex, 16).map_err(|_| FlowError::Unexpected)
    };
    let mut units = vec![unit(0)?];
    if units
        .first()
        .is_some_and(|high| (0xd800..0xdc00).contains(high))
    {
        units.push(unit(2)?);
    }
    char::decode_utf16(units)
        .next()
        .and_then(Result::ok)
        .ok_or(FlowError::Unexpected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_maps_of_both_languages_are_read() {
        assert_eq!(Flow::parse("[]"), Ok(Flow::List(vec![])));
        assert_eq!(Flow::parse("{}"), Ok(Flow::Map(vec![])));
        let flow = Flow::parse(r#"{"a": [1, "x, y"], b: {c: d e}}"#).unwrap();
        let Flow::Map(pairs) = flow else {
            panic!("a map")
        };
        assert_eq!(pairs[0].1.texts(), ["1", "x, y"]);
        assert_eq!(
            pairs[1].1,
            Flow::Map(vec![("c".into(), Flow::Text("d e".into()))])
        );
        assert_eq!(
            Flow::parse("['it''s', \"\\u00e9\"]").unwrap().texts(),
            ["it's", "é"]
        );
        assert_eq!(
            Flow::parse("[claude://a/b, tel:+1-555]").unwrap().texts(),
            ["claude://a/b", "tel:+1-555"]
        );
        assert_eq!(Flow::parse("plain"), Ok(Flow::Text("plain".into())));
    }

    #[test]
    fn broken_flows_are_rejected() {
        for text in [
            "[",
            "[a",
            "[a,",
            "[,]",
            "[a b] c",
            "[a]]",
            "{a}",
            "{a: }}",
            "[\"a]",
            "{: }x",
            "[a}",
            "[\"a\" \"b\"]",
            "{[a]: b}",
        ] {
            assert!(Flow::parse(text).is_err(), "{text}");
        }
        assert_eq!(Flow::parse(&"[".repeat(100_000)), Err(FlowError::Deep));
    }
}
