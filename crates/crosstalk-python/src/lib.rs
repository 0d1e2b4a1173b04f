//! The extension module `ai_crosstalk._native`. The package in `python/` wraps its functions with types and documentation.
//!
//! JSON goes in and comes out as text: `json` of Python reads it faster than objects can be made one by one.

#[cfg(feature = "conformance")]
mod conformance;
mod text;

use crosstalk_binding::CrosstalkError;
use pyo3::prelude::*;

/// The exception for an error of the library.
fn raise(py: Python<'_>, error: CrosstalkError) -> PyErr {
    let class = py
        .import("ai_crosstalk._error")
        .and_then(|module| module.getattr("CrosstalkError"));
    let help = Some(error.help).filter(|help| !help.is_empty());
    let code = error.code.map(|code| code.as_str());
    class
        .and_then(|class| class.call1((error.message, code, error.rule, help, error.line)))
        .map_or_else(|fault| fault, PyErr::from_value)
}

#[pymodule]
mod _native {
    use crate::raise;
    use crate::text::SourceText;
    use crosstalk_binding::{self as binding, ReplyOptions, SignOptions};
    use crosstalk_envelope::Timestamp;
    use pyo3::prelude::*;

    #[cfg(feature = "conformance")]
    #[pymodule_export]
    use crate::conformance::{case_counts, case_head, judge_case};

    #[pyfunction]
    fn parse(py: Python<'_>, text: SourceText, reading: &str) -> PyResult<String> {
        let reading = binding::parse_reading(reading).map_err(|error| raise(py, error))?;
        Ok(py.detach(|| binding::parse(text, reading)))
    }

    #[pyfunction]
    fn build(py: Python<'_>, json: &str) -> PyResult<String> {
        let built = py.detach(|| binding::build(json));
        built.map_err(|error| raise(py, error))
    }

    #[pyfunction]
    fn reply(
        py: Python<'_>,
        text: SourceText,
        body: &str,
        sender: Option<&str>,
        user: Option<&str>,
        intent: Option<&str>,
        context: Option<&str>,
    ) -> PyResult<String> {
        let options = ReplyOptions {
            from: sender,
            user,
            intent,
            context,
        };
        text.apply(py, |text| binding::reply(text, body, options))
    }

    #[pyfunction]
    fn format(py: Python<'_>, text: SourceText) -> PyResult<String> {
        text.apply(py, binding::format)
    }

    #[pyfunction]
    fn migrate(py: Python<'_>, text: SourceText) -> PyResult<String> {
        text.apply(py, binding::migrate)
    }

    #[pyfunction]
    fn lint(py: Python<'_>, text: SourceText) -> String {
        py.detach(|| binding::lint(text))
    }

    #[pyfunction]
    fn canonical(py: Python<'_>, text: SourceText) -> PyResult<String> {
        text.apply(py, binding::canonical)
    }

    #[pyfunction]
    fn digest(py: Python<'_>, text: SourceText) -> PyResult<String> {
        text.apply(py, binding::digest)
    }

    /// The private key, the public key, its record and its did.
    #[pyfunction]
    fn generate_key(py: Python<'_>, algorithm: &str) -> PyResult<(String, String, String, String)> {
        let key = py.detach(|| binding::generate_key(Some(algorithm)));
        let key = key.map_err(|error| raise(py, error))?;
        Ok((key.private_key_pem, key.public_key_pem, key.record, key.did))
    }

    #[pyfunction]
    fn sign(
        py: Python<'_>,
        text: SourceText,
        private_key_pem: &str,
        key_id: &str,
        with_key: bool,
        replace: bool,
        at: &str,
    ) -> PyResult<String> {
        let options = SignOptions {
            key_id,
            with_key,
            replace,
            at: time(py, at)?,
        };
        text.apply(py, |text| binding::sign(text, private_key_pem, options))
    }

    #[pyfunction]
    fn verify(
        py: Python<'_>,
        text: SourceText,
        keys: Vec<(String, String)>,
        at: &str,
    ) -> PyResult<String> {
        let at = time(py, at)?;
        let verdict = py.detach(|| binding::verify(text, &keys, at));
        verdict.map_err(|error| raise(py, error))
    }

    #[pyfunction]
    fn new_id() -> String {
        binding::new_id()
    }

    #[pyfunction]
    fn parse_address(text: &str) -> String {
        binding::parse_address(text)
    }

    #[pyfunction]
    fn redact(py: Python<'_>, text: SourceText) -> PyResult<String> {
        text.apply(py, binding::redact)
    }

    fn time(py: Python<'_>, text: &str) -> PyResult<Timestamp> {
        let fault = || binding::CrosstalkError::usage(format!("`{text}` is not a time"));
        let help = "write it in UTC, such as 2026-01-31T12:00:00Z";
        Timestamp::parse(text).ok_or_else(|| raise(py, fault().help(help)))
    }
}
