//! The judge of the suite for the packages in other languages: their runners walk the folder and answer what they can.

use crate::Ours;
use crosstalk_conform::{
    CaseFailure, CaseFile, CaseQuestion, Implementation, Levels, SpecLevel, judge,
};
use serde_json::{Value, json};

/// A package behind the interface of the suite.
struct TestedPackage<'p> {
    /// The answer to a question, both as JSON; none if the package does not offer the operation.
    answer: &'p dyn Fn(&str) -> Result<Option<String>, String>,
}

impl Implementation for TestedPackage<'_> {
    fn answer(&self, question: &CaseQuestion) -> Result<Value, CaseFailure> {
        match (self.answer)(&question.to_json()).map_err(CaseFailure::NoAnswer)? {
            Some(answer) => serde_json::from_str(&answer)
                .map_err(|fault| CaseFailure::NoAnswer(format!("not JSON: {fault}"))),
            None => Ours.answer(question),
        }
    }
}

/// Runs a case file against a package. Operations that the package does not offer are answered by the Rust crates.
///
/// # Errors
/// Why the package does not pass the case, or what is wrong with the file.
pub fn judge_case(
    id: &str,
    file: &[u8],
    answer: &dyn Fn(&str) -> Result<Option<String>, String>,
) -> Result<(), String> {
    let case = CaseFile::parse(id, file)?;
    judge(&case, &TestedPackage { answer }).map_err(|fault| fault.to_string())
}

/// The head of a case file as a JSON object, with the number of its level by the text of a `levels.toml`.
///
/// # Errors
/// The fault of either file.
pub fn case_head(levels: &str, id: &str, file: &[u8]) -> Result<String, String> {
    let case = CaseFile::parse_head(id, file)?;
    let level = Levels::parse(levels)?.of_case(&case);
    let number = SpecLevel::ALL.iter().position(|one| Some(*one) == level);
    let number = number.ok_or("levels.toml gives its rule, op or reading no level")?;
    let mut head = json!(case.head());
    if let Some(head) = head.as_object_mut() {
        head.insert("level".to_owned(), json!(number));
    }
    Ok(head.to_string())
}

/// The bytes of a section of a case file.
///
/// # Errors
/// The fault of the file, or that it has no such section.
pub fn case_section(id: &str, file: &[u8], title: &str) -> Result<Vec<u8>, String> {
    Ok(CaseFile::parse(id, file)?.section(title)?.to_vec())
}
