//! The judge of the conformance suite, for `js/test/conformance.mjs`.

use crosstalk_conform::CaseSet;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    /// An object with the method `answer`.
    pub type TestedPackage;

    /// The answer to a question, both as JSON; nothing if the package does not offer the operation.
    #[wasm_bindgen(method, catch)]
    fn answer(this: &TestedPackage, question: &str) -> Result<Option<String>, JsValue>;
}

/// Runs a case file against a package: the reason why it fails, or nothing.
#[wasm_bindgen]
pub fn judge_case(id: &str, file: &[u8], tested: &TestedPackage) -> Option<String> {
    let answer = |question: &str| {
        tested
            .answer(question)
            .map_err(|fault| format!("{fault:?}"))
    };
    crosstalk_conformance::judge_case(id, file, &answer).err()
}

/// The head of a case file as a JSON object, with the number of its level.
#[wasm_bindgen]
pub fn case_head(levels: &str, id: &str, file: &[u8]) -> Result<String, String> {
    crosstalk_conformance::case_head(levels, id, file)
}

/// The bytes of a section of a case file.
#[wasm_bindgen]
pub fn case_section(id: &str, file: &[u8], title: &str) -> Result<Vec<u8>, String> {
    crosstalk_conformance::case_section(id, file, title)
}

/// The number of cases of each level.
#[wasm_bindgen]
pub fn case_counts() -> Result<Vec<usize>, String> {
    Ok(CaseSet::embedded()?.counts())
}
