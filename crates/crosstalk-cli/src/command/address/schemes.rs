//! More address schemes, in the format of `spec/registry/schemes.toml` (ADR-008).

use crate::console::Console;
use crate::failure::Failure;
use crate::input::Input;
use crosstalk_envelope::registry::{SchemeForm, SchemeKind};
use crosstalk_envelope::{ErrorCode, Schemes};
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Registry {
    #[serde(default)]
    scheme: Vec<SchemeEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemeEntry {
    name: String,
    form: EntryForm,
    kind: String,
    /// For people only.
    #[serde(default, rename = "summary")]
    _summary: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EntryForm {
    Authority,
    Opaque,
}

/// The registry's schemes and those of a file.
pub(super) fn read(path: &Path, console: &mut Console) -> Result<Schemes, Failure> {
    let input = Input::read(path, console)?;
    let refused = |why: &dyn std::fmt::Display| {
        let message = format!("{}: {why}", input.name);
        Failure::Refused(ErrorCode::Format, message)
    };
    let text = input.text().map_err(|(_, fault)| refused(&fault))?;
    let registry: Registry = toml::from_str(text).map_err(|e| refused(&e))?;
    let mut schemes = Schemes::default();
    for entry in registry.scheme {
        let Some(kind) = SchemeKind::parse(&entry.kind) else {
            let message = format!(
                "the scheme `{}` has no known kind: `{}`",
                entry.name, entry.kind
            );
            return Err(refused(&message));
        };
        let form = match entry.form {
            EntryForm::Authority => SchemeForm::Authority,
            EntryForm::Opaque => SchemeForm::Opaque,
        };
        schemes.add(entry.name, form, kind);
    }
    Ok(schemes)
}
