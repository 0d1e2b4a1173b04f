//! Texts of a caller: `str`, or `bytes` of a file or a connection, which may not be UTF-8.

use crate::raise;
use crosstalk_binding::CrosstalkError;
use crosstalk_envelope::decode;
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

impl AsRef<[u8]> for SourceText {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl SourceText {
    /// Does something with the text, while other threads run.
    pub(crate) fn apply<T: Send>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&str) -> Result<T, CrosstalkError> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            let bytes = self.as_ref();
            match decode(bytes) {
                Ok(text) => work(text),
                Err(fault) => {
                    let shown = String::from_utf8_lossy(bytes);
                    Err(CrosstalkError::of_finding(&fault, &shown))
                }
            }
        });
        done.map_err(|error| raise(py, error))
    }
}
