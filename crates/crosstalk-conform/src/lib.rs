//! Checks implementations of the AI Crosstalk Protocol, in whatever language they are written.
//!
//! - [`relay`] sends requests to a relay and reports by rule: level L3, over the network.
//! - [`CaseSet`] holds the case files of `conformance/`, each about one rule, with its [`Level`]. [`judge`] runs
//!   one against an [`Implementation`].
//! - [`program`] is such an implementation: any program that reads one JSON object per line and answers one per line.

mod case;
mod judge;
#[cfg(feature = "remote")]
mod junit;
mod level;
#[cfg(feature = "remote")]
pub mod program;
mod question;
#[cfg(feature = "remote")]
pub mod relay;
mod set;
mod subset;

pub use case::{CaseFile, ops};
pub use judge::judge;
pub use level::{Levels, SpecLevel};
pub use question::{CaseFailure, CaseQuestion, Implementation};
pub use set::{CaseSet, CaseSource};
pub use subset::subset;
