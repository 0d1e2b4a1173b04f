//! The files of Crosstalk: keys, the trust file, the settings and messages.
//!
//! ```text
//! Home                  the folders: CROSSTALK_HOME, or those of the platform
//!   KeyStore            private keys, one PEM file each, and their public facts in a file beside it
//!   TrustFile           trusted keys, changed by one process at a time
//!   ConfigFile          the settings, as text
//!   SqliteStore         messages, threads, inboxes and deliveries
//! PostgresRelay         the store of many relays in one PostgreSQL database
//! MemoryRelay           the store of a relay in memory, the model of the port
//! import(text)          a key out of a backup, or out of another program
//! ```
//!
//! A file is complete or absent: the store writes a new file, syncs it and renames it. On Unix, files are
//! made for their owner alone, and a private key that others can read is rejected. Windows has no such modes: there
//! the folder of the user's profile is what keeps others out.

mod agent;
mod backup;
mod chain;
mod config;
mod disk;
mod facts;
mod fault;
mod home;
mod keys;
mod memory;
mod name;
mod pem;
mod permission;
mod postgres;
mod sqlite;
mod transfer;
mod trust;

pub use agent::{AgentFacts, AgentFolder, HeldAgent};
pub use backup::{Imported, import};
pub use config::{ConfigFile, ConfigFileError};
pub use facts::{KeyFacts, KeyRetirement, KeyRevocation, KeyRotation};
pub use fault::{DiskError, KeyFileError};
pub use home::{Home, HomeError};
pub use keys::{KeyHandover, KeyListing, KeyStore, StoredKey};
pub use memory::MemoryRelay;
pub use permission::require_own;
pub use postgres::{PostgresPlace, PostgresRelay, PostgresTrust};
pub use sqlite::{COPY_FOLDER, Owned, SearchProgress, SqliteRelay, SqliteStore, StoreOpening};
pub use transfer::{CopyProgress, CopyReport, StorePlace, copy_store};
pub use trust::{TrustFile, TrustStoreError};
