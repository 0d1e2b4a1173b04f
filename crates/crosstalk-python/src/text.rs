//! Texts of a caller: `str`, or `bytes` of a file or a connection, which may not be UTF-8.

use crate::raise;
use crosstalk_binding::form::{LINT, LintReport, NamedForm, VERIFY, VerifyReport, finding_value};
use crosstalk_binding::{self as binding, CrosstalkError, NamedKey};
use crosstalk_envelope::json::report;
use crosstalk_envelope::{Diagnostic, LineIndex, Reading, Scan, Timestamp, decode};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyString;

/// A text that is not copied, and can be read while other threads run.
pub(crate) enum SourceText {
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
}

impl<'a, 'py> FromPyObject<'a, 'py> for SourceText {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Ok(text) = value.cast::<PyString>() else {
            return Ok(Self::Bytes(value.extract()?));
        };
        match text.extract() {
            Ok(text) => Ok(Self::Text(text)),
            // Half of a surrogate pair: not UTF-8, as the reader will say.
            Err(_) => {
                let bytes = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
                Ok(Self::Bytes(bytes.extract()?))
            }
        }
    }
}

impl SourceText {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    fn decoded(&self) -> Result<&str, Diagnostic> {
        decode(self.bytes())
    }

    /// The text for the places of findings.
    fn shown(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.bytes())
    }

    /// Does something with the text, while other threads run.
    pub(crate) fn apply<T: Send>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&str) -> Result<T, CrosstalkError> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| match self.decoded() {
            Ok(text) => work(text),
            Err(fault) => Err(CrosstalkError::of_finding(&fault, &self.shown())),
        });
        done.map_err(|error| raise(py, error))
    }

    /// The report of the reader. It has a finding for bytes that are not UTF-8, too.
    pub(crate) fn parse(&self, reading: Reading) -> String {
        match self.decoded() {
            Ok(text) => binding::parse(text, reading),
            Err(fault) => to_json(&report(&self.shown(), &unread(fault))),
        }
    }

    pub(crate) fn lint(&self) -> String {
        let fault = match self.decoded() {
            Ok(text) => return binding::lint(text),
            Err(fault) => fault,
        };
        let (shown, mut report) = (self.shown(), LintReport::default());
        let lines = LineIndex::new(&shown);
        for finding in report.add_scan(&unread(fault)) {
            report.diagnostics.push(finding_value(&finding, &lines));
        }
        to_json(&NamedForm::new(LINT, &report))
    }

    pub(crate) fn verify(
        &self,
        keys: &[NamedKey],
        at: Timestamp,
    ) -> Result<String, CrosstalkError> {
        let fault = match self.decoded() {
            Ok(text) => return binding::verify(text, keys, at),
            Err(fault) => [fault],
        };
        let shown = self.shown();
        let report = VerifyReport::refused(&fault).with_findings(&fault, &LineIndex::new(&shown));
        Ok(to_json(&NamedForm::new(VERIFY, &report)))
    }
}

/// The reading of a text that can't be read.
fn unread(fault: Diagnostic) -> Scan<'static> {
    let mut scan = Scan::default();
    scan.rejected.push(fault);
    scan
}

/// The forms have texts as keys and no numbers that JSON lacks, so there is always one.
fn to_json(form: &impl serde::Serialize) -> String {
    serde_json::to_string(form).unwrap_or_default()
}
