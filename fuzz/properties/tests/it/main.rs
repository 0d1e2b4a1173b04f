//! The fuzz targets over their saved corpora, and hostile texts by the million.

#![allow(clippy::unwrap_used, reason = "what tests build, they build well")]

mod corpus;
mod hostile;
mod property;
