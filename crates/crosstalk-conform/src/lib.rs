//! Checks implementations of the AI Crosstalk Protocol, in whatever language they are written.
//!
//! - [`relay`] sends requests to a relay and reports by rule: level L3, over the network.
//! - [`CaseSet`] holds the case files of `conformance/`, each about one rule, with its [`Level`]. [`judge`](judge::judge) runs
//!   one against an [`Implementation`](judge::Implementation).
//! - [`program`] is such an implementation: any program that reads one JSON object per line and answers one per line.

mod case;
mod fault;
pub mod judge;
mod junit;
mod level;
pub mod program;
pub mod relay;
mod set;
mod subset;

pub use case::{CaseFile, ops};
pub use fault::Fault;
pub use level::{Level, Levels};
pub use set::{CaseSet, CaseSource};
pub use subset::subset;
