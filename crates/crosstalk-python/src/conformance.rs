//! The judge of the conformance suite. For tests alone.

use crosstalk_conform::CaseSet;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Runs a case file against a package: the reason why it fails, or nothing. `answer` gives the answer to a question, both as JSON;
/// nothing if the package does not offer the operation.
#[pyfunction]
pub fn judge_case(id: &str, file: &[u8], answer: Bound<'_, PyAny>) -> Option<String> {
    let answer = |question: &str| {
        let answer = answer
            .call1((question,))
            .and_then(|answer| answer.extract());
        answer.map_err(|fault| fault.to_string())
    };
    crosstalk_conformance::judge_case(id, file, &answer).err()
}

/// The head of a case file as a JSON object, with the number of its level.
#[pyfunction]
pub fn case_head(levels: &str, id: &str, file: &[u8]) -> PyResult<String> {
    crosstalk_conformance::case_head(levels, id, file).map_err(PyRuntimeError::new_err)
}

/// The number of cases of each level.
#[pyfunction]
pub fn case_counts() -> PyResult<Vec<usize>> {
    let cases = CaseSet::embedded().map_err(PyRuntimeError::new_err)?;
    Ok(cases.counts())
}
