//! What Crosstalk keeps on disk: key files, the trust file and the settings.
//! What Crosstalk keeps on disk: key files, the trust file and messages.
//!
//! ```text
//! Home                  where everything is: CROSSTALK_HOME, or the folders of the platform
//!   KeyStore            private keys, one PEM file each, and what is public about them beside it
//!   TrustFile           whom to believe, changed by one process at a time
//!   ConfigFile          the settings, as text
//!   SqliteStore         messages, threads and what waits for whom
//! import(text)          a key out of a backup, or out of another program
//! ```
//!
//! Whatever is written is complete or not there: it is written to a new file, synced and renamed. On Unix, files are
//! made for their owner alone, and a private key that others can read is refused. Windows has no such modes: there
//! the folder of the user's profile is what keeps others out.

mod backup;
mod config;
mod disk;
mod facts;
mod fault;
mod home;
mod keys;
mod name;
mod pem;
mod permission;
mod sqlite;
mod trust;

pub use backup::{Imported, import};
pub use config::{ConfigFile, ConfigFileError};
pub use facts::{Facts, Retired, Revoked, Rotation};
pub use fault::{DiskError, KeyFileError};
pub use home::{Home, HomeError};
pub use keys::{Handover, KeyStore, Listing, StoredKey};
pub use permission::require_own;
pub use sqlite::{Opened, Owned, SqliteStore};
pub use trust::{TrustFile, TrustStoreError};
