//! The workspace of the conversation commands: settings, keys and trust, and the messages that are kept.

use crate::console::{Console, YELLOW, styled};
use crate::failure::Failure;
use crate::input::shown_path;
use crate::service::clipboard::{Clipboard, ClipboardError, Follower};
use crate::service::home::KeysAndTrust;
use crate::service::settings::{Ids, Settings};
use crosstalk_envelope::id;
use crosstalk_protocol::store::{Listing, Mine, StoreError};
use crosstalk_store::{Home, SqliteStore};

/// Settings, keys, trust and store of a person, opened for one command.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) config: Settings,
    pub(crate) keys: KeysAndTrust,
    home: Home,
}

impl Workspace {
    /// The one of `CROSSTALK_HOME`, or of the platform. Nothing is made yet.
    pub(crate) fn open(console: &mut Console) -> Result<Self, Failure> {
        Ok(Self {
            config: Settings::open(console)?,
            keys: KeysAndTrust::open()?,
            home: Home::from_env()?,
        })
    }

    /// The names and addresses that are the person's own.
    pub(crate) fn mine(&self) -> Result<Mine, Failure> {
        let all = self.config.me().into_iter().chain([self.config.sender()?]);
        Ok(Mine::new(all))
    }

    /// Where everything is kept.
    pub(crate) const fn home(&self) -> &Home {
        &self.home
    }

    /// The clipboard that the settings choose.
    pub(crate) fn clipboard(&self) -> Result<Clipboard, ClipboardError> {
        Clipboard::open(self.config.clipboard())
    }

    /// The same clipboard, to look at again and again.
    pub(crate) fn follow_clipboard(&self) -> Follower {
        Follower::new(self.config.clipboard())
    }

    /// A new id, of the form that the settings choose.
    pub(crate) fn new_id(&self) -> String {
        match self.config.ids() {
            Ids::Ulid => id::new_ulid(),
            Ids::Uuid => id::new_uuid_v7(),
        }
    }

    /// The messages, to add to; the store is made if there is none.
    pub(crate) fn store(&self, console: &mut Console) -> Result<SqliteStore, Failure> {
        let opened = SqliteStore::open(self.home.store())?;
        tell_migration(console, &opened)?;
        Ok(opened)
    }

    /// The messages, if there are any.
    pub(crate) fn messages(&self, console: &mut Console) -> Result<Option<SqliteStore>, Failure> {
        let opened = SqliteStore::open_existing(self.home.store())?;
        if let Some(opened) = &opened {
            tell_migration(console, opened)?;
        }
        Ok(opened)
    }

    /// The messages; a failure that says how to begin if there are none.
    pub(crate) fn kept(&self, console: &mut Console) -> Result<SqliteStore, Failure> {
        let store = self.messages(console)?;
        store.ok_or_else(|| match self.config.relays().is_empty() {
            true => Failure::failed(NOTHING.to_owned()),
            false => Failure::failed(NOTHING.to_owned()).help(
                "`crosstalk inbox --relay --take` fetches the messages that wait at your relay; then answer them",
            ),
        })
    }
}

/// A part of a list in the store, and whether there is more; an empty one without a store.
pub(crate) fn listed<T>(
    store: Option<&SqliteStore>,
    list: impl FnOnce(&SqliteStore) -> Result<Listing<T>, StoreError>,
) -> Result<(Vec<T>, bool), Failure> {
    let listing = store.map(list).transpose()?;
    Ok(listing.map_or_else(|| (Vec::new(), false), |l| (l.items, l.more)))
}

/// The message where nothing is kept yet.
pub(crate) const NOTHING: &str = "nothing is kept here yet: begin with `crosstalk send chatgpt \"Your question\"`, or with \
                                  `crosstalk paste`";

/// Says that an older store was brought to the version of this program.
fn tell_migration(console: &mut Console, store: &SqliteStore) -> Result<(), Failure> {
    let opened = store.opened();
    let (Some(from), Some(backup)) = (opened.migrated_from, &opened.backup) else {
        return Ok(());
    };
    let backup = backup.to_string_lossy();
    console.talk(&format!(
        "{}: the store was of version {from} and was upgraded; a copy of the old one is in {}\n",
        styled(YELLOW, "note"),
        shown_path(&backup)
    ))
}
