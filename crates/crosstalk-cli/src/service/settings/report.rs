//! Settings for programs: each with its source.

use super::{Config, Source};
use serde_json::{Value as Json, json};

/// The names of the table, with their sources.
pub(crate) fn names_json(config: &Config) -> Vec<Json> {
    let names = config.names().iter();
    let names = names.map(|(name, address)| {
        let source = config.name_source(name);
        with_source(json!({"name": name, "address": address}), &source)
    });
    names.collect()
}

pub(crate) fn with_source(mut value: Json, source: &Source) -> Json {
    if let Some(map) = value.as_object_mut() {
        map.insert("source".into(), source.as_str().into());
        map.insert("line".into(), source.line().into());
        let (profile, variable) = match source {
            Source::Profile(name, _) => (Some(name.as_str()), None),
            Source::Variable(name) => (None, Some(name.as_str())),
            _ => (None, None),
        };
        map.insert("profile".into(), profile.into());
        map.insert("variable".into(), variable.into());
    }
    value
}
