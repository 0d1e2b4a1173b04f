//! Operations of the conformance suite that the JavaScript package does not offer, for `js/test/conformance.mjs`.

use crosstalk_conform::CaseSet;
use wasm_bindgen::prelude::wasm_bindgen;

/// The answer to a question of the suite: a line of JSON for a line of JSON.
#[wasm_bindgen]
pub fn answer(question: &str) -> String {
    crosstalk_conformance::answer(question)
}

/// The number of cases of each level.
#[wasm_bindgen]
pub fn case_counts() -> Result<Vec<usize>, String> {
    Ok(CaseSet::embedded()?.counts())
}

/// A TOML text as JSON: JavaScript has no reader of its own.
#[wasm_bindgen]
pub fn toml_to_json(text: &str) -> Result<String, String> {
    let table: toml::Table = toml::from_str(text).map_err(|fault| fault.to_string())?;
    serde_json::to_string(&table).map_err(|fault| fault.to_string())
}
