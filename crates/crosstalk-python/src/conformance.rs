//! Operations of the conformance suite that the package does not offer, and how many cases there are. For tests alone.

use crosstalk_conform::CaseSet;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The answer to a question of the suite: a line of JSON for a line of JSON.
#[pyfunction]
pub fn answer(py: Python<'_>, question: &str) -> String {
    py.detach(|| crosstalk_conformance::answer(question))
}

/// The number of cases of each level.
#[pyfunction]
pub fn case_counts() -> PyResult<Vec<usize>> {
    let cases = CaseSet::embedded().map_err(PyRuntimeError::new_err)?;
    Ok(cases.counts())
}
