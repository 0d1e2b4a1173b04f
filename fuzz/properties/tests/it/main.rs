//! The fuzz targets over their saved corpora, and hostile texts by the million.

mod corpus;
mod hostile;
mod property;
