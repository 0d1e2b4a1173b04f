//! The cases that need code: raw sockets, several requests at once, signatures, exact sizes. Their names, rules and titles
//! are in `conformance/http/` with all others.

mod blob;
mod consent;
mod expiry;
mod hop;
mod load;
mod message;
mod wait;

use super::CaseFunction;

/// The functions of the cases, by the names of these.
pub(super) const ALL: &[&[(&str, CaseFunction)]] = &[
    message::CODE,
    wait::CODE,
    expiry::CODE,
    blob::CODE,
    load::CODE,
    hop::CODE,
    consent::CODE,
];

/// The function of a case.
pub(super) fn find(id: &str) -> Option<CaseFunction> {
    let mut all = ALL.iter().flat_map(|list| list.iter());
    all.find(|(name, _)| *name == id).map(|(_, run)| *run)
}

/// The name of a case and the function that runs it.
macro_rules! code {
    ($id:literal, $run:ident) => {
        ($id, |probe| Box::pin($run(probe)))
    };
}
use code;
