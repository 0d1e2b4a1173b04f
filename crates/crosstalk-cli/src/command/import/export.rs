//! The JSON of a chat program: one conversation after the other, however long the file is.

use crate::failure::Failure;
use serde::Deserializer as _;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize as _, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::io::Read;

/// How reading ended early.
#[derive(Debug)]
pub(super) enum Ended {
    /// It is no JSON, or not whole.
    Malformed(serde_json::Error),
    /// A conversation could not be kept.
    Failed(Failure),
}

/// Gives every element of a list to `each`, or the one object that there is.
pub(super) fn each_element(
    reader: impl Read,
    each: impl FnMut(Value) -> Result<(), Failure>,
) -> Result<(), Ended> {
    let mut failure = None;
    let elements = Elements {
        each,
        failure: &mut failure,
    };
    let mut json = serde_json::Deserializer::from_reader(reader);
    let read = json.deserialize_any(elements).and_then(|()| json.end());
    match (failure, read) {
        (Some(failure), _) => Err(Ended::Failed(failure)),
        (None, Err(fault)) => Err(Ended::Malformed(fault)),
        (None, Ok(())) => Ok(()),
    }
}

struct Elements<'f, F> {
    each: F,
    failure: &'f mut Option<Failure>,
}

impl<F: FnMut(Value) -> Result<(), Failure>> Elements<'_, F> {
    fn give<E: serde::de::Error>(&mut self, value: Value) -> Result<(), E> {
        (self.each)(value).map_err(|failure| {
            *self.failure = Some(failure);
            E::custom("stopped")
        })
    }
}

impl<'de, F: FnMut(Value) -> Result<(), Failure>> Visitor<'de> for Elements<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of conversations")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(value) = list.next_element::<Value>()? {
            self.give(value)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, map: A) -> Result<(), A::Error> {
        let value = Value::deserialize(MapAccessDeserializer::new(map));
        let value = value.map_err(|e| A::Error::custom(e.to_string()))?;
        self.give(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(text: &str) -> (Vec<Value>, Result<(), Ended>) {
        let mut found = Vec::new();
        let read = each_element(text.as_bytes(), |value| {
            found.push(value);
            Ok(())
        });
        (found, read)
    }

    #[test]
    fn elements_come_one_by_one_also_of_a_file_that_is_cut_off() {
        let (found, read) = elements(r#"[{"id": 1}, {"id": 2}]"#);
        assert_eq!((found.len(), read.is_ok()), (2, true));
        let (found, read) = elements(r#"[{"id": 1}, {"id""#);
        assert_eq!(found.len(), 1);
        assert!(matches!(read, Err(Ended::Malformed(_))));
        let (found, read) = elements(r#"{"id": 1}"#);
        assert_eq!((found.len(), read.is_ok()), (1, true));
        assert!(elements("Not JSON").1.is_err());
        assert!(elements("[] []").1.is_err());
        let stop = each_element(&b"[1, 2]"[..], |_| Err(Failure::failed("full")));
        assert!(matches!(stop, Err(Ended::Failed(_))));
    }
}
