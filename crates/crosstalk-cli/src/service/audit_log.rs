//! The log of a relay, in its data folder or over the network, and the keys that it is checked with.

use crate::console::Console;
use crate::failure::Failure;
use crate::service::home::{KeysAndTrust, public_key};
use crate::service::lookup;
use crate::service::relay::data::{DataArgument, DataFolder};
use crate::service::relay::remote::{RelayArgument, Remote};
use crate::service::settings::Settings;
use crate::service::workspace::Workspace;
use crate::{clock, shell};
use clap::Args;
use crosstalk_envelope::PublicKey;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::Trust;
use crosstalk_protocol::audit::{
    ChainId, Checkpoint, EventKind, Hash, LogEntry, LogPlace, LogQuery, LogReceipt, Note,
    NoteError, NoteKey, SignedCheckpoint,
};
use crosstalk_protocol::relay::Retention;
use crosstalk_protocol::store::ReferenceMatch;
use crosstalk_relay::client::LogChainView;
use crosstalk_store::SqliteStore;
use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

const AT_ONCE: usize = 500;

/// Which log is meant.
#[derive(Args, Clone, Debug)]
pub(crate) struct LogArgument {
    #[command(flatten)]
    data: DataArgument,
    #[command(flatten)]
    through: RelayArgument,
}

pub(crate) enum LogSource {
    Local {
        store: Box<SqliteStore>,
        data: DataFolder,
        name: String,
    },
    Remote(Box<Remote>),
}

impl LogArgument {
    /// Opens the log: over the network if a relay is named, else in the data folder, else at the relay of the
    /// settings.
    pub(crate) fn open(&self, console: &mut Console) -> Result<LogSource, Failure> {
        let is_folder_named = self.data.data.is_some();
        if self.through.is_named() && is_folder_named {
            let failure = Failure::usage("--data and --relay name two logs");
            return Err(failure.help("pass one of them"));
        }
        let data = self.data.folder()?;
        if self.through.is_named() || (!is_folder_named && !data.store().is_file()) {
            let config = Settings::open(console)?;
            if !self.through.is_named() && config.relays().is_empty() {
                return Err(Failure::failed(format!(
                    "there is no relay in {}, and the settings name none",
                    data.folder().display()
                ))
                .help(
                    "name the relay with --relay URL, or its data folder \
                     with --data DIR",
                ));
            }
            let remote = self.through.connect(&config, None)?;
            return Ok(LogSource::Remote(Box::new(remote)));
        }
        if !data.store().is_file() {
            return Err(Failure::failed(format!(
                "there is no relay in {}",
                data.folder().display()
            ))
            .help("name its data folder with --data DIR, or ask the relay with --relay URL"));
        }
        let store = Box::new(data.open()?);
        let name = data.relay_name(&store)?;
        Ok(LogSource::Local { store, data, name })
    }
}

/// How long a command waits for a running relay to sign what it has written.
const CHECKPOINT_WAIT: Duration = Duration::from_secs(15);

const CHECKPOINT_POLL: Duration = Duration::from_millis(50);

fn no_note(error: NoteError) -> Failure {
    Failure::failed(format!("this relay signs no checkpoints: {error}"))
        .help("give it an ed25519 key and a name without spaces and `+`")
}

impl LogSource {
    /// The chains of the log that have entries, by their numbers. A data folder has one.
    pub(crate) fn chains(&self) -> Result<Vec<ChainId>, Failure> {
        let Self::Remote(remote) = self else {
            return Ok(vec![ChainId::FIRST]);
        };
        let until = Instant::now() + CHECKPOINT_WAIT;
        loop {
            let chains = match remote.chains() {
                Ok(chains) => chains,
                // A relay of an earlier version has one.
                Err(error) if error.is_unknown() => return Ok(vec![ChainId::FIRST]),
                Err(error) => return Err(error.into()),
            };
            // Another relay may have begun its chain a moment ago.
            let is_unsigned = |c: &&LogChainView| c.chain != 0 && c.size > 0 && c.signed.is_none();
            match chains.iter().find(is_unsigned) {
                Some(chain) if Instant::now() >= until => {
                    let what = format!(
                        "chain {} of the log has {} entries, and no checkpoint that its key signed",
                        chain.chain, chain.size
                    );
                    let help = "start the relay that writes this chain, so that it signs; if it did, the checkpoint in the database \
                                was changed";
                    return Err(Failure::failed(what).help(help));
                }
                Some(_) => thread::sleep(CHECKPOINT_POLL),
                None => {
                    let is_there = |c: &LogChainView| c.chain == 0 || c.size > 0;
                    let chains = chains.into_iter().filter(is_there);
                    return Ok(chains.map(|c| ChainId(c.chain)).collect());
                }
            }
        }
    }

    /// Fails if a data folder is asked for a chain that it does not have. A relay answers that itself.
    pub(crate) fn require_chain(&self, chain: ChainId) -> Result<(), Failure> {
        match (self, chain) {
            (Self::Remote(_), _) | (_, ChainId::FIRST) => Ok(()),
            (Self::Local { .. }, _) => {
                let failure =
                    Failure::failed(format!("the log of a data folder has no chain {chain}"));
                Err(failure.help("leave --chain out, or ask the relay with --relay URL"))
            }
        }
    }

    pub(crate) fn key(&self, chain: ChainId) -> Result<NoteKey, Failure> {
        match self {
            Self::Local { data, name, .. } => {
                NoteKey::new(name, data.require_key(name)?.public()).map_err(no_note)
            }
            Self::Remote(remote) => Ok(remote.log_key(chain)?),
        }
    }

    /// A checkpoint of every entry there is now in a chain. A running relay signs one soon; in a folder without a relay it is signed here.
    ///
    /// A relay under constant load signs late. After [`CHECKPOINT_WAIT`] its latest checkpoint has to do.
    pub(crate) fn checkpoint(&mut self, chain: ChainId) -> Result<String, Failure> {
        match self {
            Self::Local { store, data, name } => {
                let size = store.log_size()?;
                let until = Instant::now() + CHECKPOINT_WAIT;
                loop {
                    let latest = store.checkpoint()?;
                    let is_whole = latest.as_ref().is_some_and(|l| l.size >= size);
                    if !is_whole && let Ok(_alone) = data.claim() {
                        return sign(store, data, name, size);
                    }
                    match latest {
                        Some(latest) if is_whole || Instant::now() >= until => {
                            return Ok(latest.note);
                        }
                        None if Instant::now() >= until => {
                            return Err(Failure::failed(format!(
                                "the relay has signed no checkpoint within {} seconds",
                                CHECKPOINT_WAIT.as_secs()
                            ))
                            .help("look for errors in its log, and run this again"));
                        }
                        _ => thread::sleep(CHECKPOINT_POLL),
                    }
                }
            }
            Self::Remote(remote) => Ok(remote.checkpoint(chain)?),
        }
    }

    /// A checkpoint of every entry there is now in a chain, checked with its key.
    pub(crate) fn signed(
        &mut self,
        chain: ChainId,
        key: &NoteKey,
    ) -> Result<(String, Checkpoint), Failure> {
        self.expire()?;
        let note = self.checkpoint(chain)?;
        let parsed = Note::parse(&note);
        let claimed = parsed.as_ref().ok().and_then(|n| n.claim().ok());
        match (parsed.and_then(|n| n.open(key)), claimed) {
            (Ok(signed), _) => Ok((note, signed)),
            (Err(_), Some(claim)) if claim.origin != key.name() => {
                Err(self.renamed(&claim.origin, key.name()))
            }
            (Err(fault), _) => Err(Failure::failed(format!("the checkpoint: {fault}"))),
        }
    }

    /// Entries in their order, as many as there are.
    pub(crate) fn entries(
        &self,
        asked: &LogQuery,
        told: &mut dyn FnMut(u64),
    ) -> Result<Vec<LogEntry>, Failure> {
        let mut found: Vec<LogEntry> = Vec::new();
        let mut next = asked.clone();
        while found.len() < asked.limit {
            next.limit = AT_ONCE.min(asked.limit - found.len());
            let part = match self {
                Self::Local { store, .. } => store.log_entries(&next)?,
                Self::Remote(remote) => remote.entries(&next)?.1,
            };
            let Some(last) = part.last() else { break };
            next.from = last.index + 1;
            found.extend(part);
            told(found.len() as u64);
            if asked.newest {
                break;
            }
        }
        Ok(found)
    }

    pub(crate) fn inclusion(&self, place: LogPlace, size: u64) -> Result<Vec<Hash>, Failure> {
        match self {
            Self::Local { store, data, .. } => {
                let path = store.log_inclusion(place.index, size)?;
                path.ok_or_else(|| short(size, data))
            }
            Self::Remote(remote) => Ok(remote.inclusion(place, size)?),
        }
    }

    pub(crate) fn consistency(
        &self,
        chain: ChainId,
        from: u64,
        to: u64,
    ) -> Result<Vec<Hash>, Failure> {
        match self {
            Self::Local { store, data, .. } => {
                let path = store.log_consistency(from, to)?;
                path.ok_or_else(|| short(to, data))
            }
            Self::Remote(remote) => Ok(remote.consistency(chain, from, to)?),
        }
    }

    /// Erases expired messages of a data folder, so that the log records it. A relay does so when it is asked for
    /// texts.
    fn expire(&mut self) -> Result<(), Failure> {
        let Self::Local { store, .. } = self else {
            return Ok(());
        };
        let what = Retention {
            before: None,
            now: clock::exact(),
            brief_before: None,
            limit: AT_ONCE,
        };
        while store.retire(&what)?.more {}
        Ok(())
    }

    /// The message that an id, or the beginning of one, means.
    pub(crate) fn message(
        &self,
        console: &mut Console,
        text: Option<&str>,
    ) -> Result<Option<String>, Failure> {
        let find = match self {
            Self::Local { .. } => message_or_erased,
            Self::Remote(_) => message,
        };
        self.named(console, text, find)
    }

    /// The thread that an id, or the beginning of one, means.
    pub(crate) fn thread(
        &self,
        console: &mut Console,
        text: Option<&str>,
    ) -> Result<Option<String>, Failure> {
        self.named(console, text, thread)
    }

    /// Completes the beginning of an id from the messages on this machine; returns other texts unchanged.
    fn named(
        &self,
        console: &mut Console,
        text: Option<&str>,
        find: fn(&SqliteStore, &str) -> Result<Option<String>, Failure>,
    ) -> Result<Option<String>, Failure> {
        let Some(text) = text else { return Ok(None) };
        let found = match self {
            Self::Local { store, .. } => find(store, text)?,
            Self::Remote(_) => match Workspace::open(console)?.messages(console)? {
                Some(store) => find(&store, text)?,
                None => None,
            },
        };
        Ok(Some(found.unwrap_or_else(|| text.to_owned())))
    }

    /// The failure that the log has no matching entry.
    pub(crate) fn nothing(&self, asked: &LogQuery) -> Failure {
        let what = match (&asked.id, &asked.thread) {
            (Some(id), _) => format!("of the message `{id}`"),
            (None, Some(id)) => format!("of the thread `{id}`"),
            (None, None) => "of that time".to_owned(),
        };
        let log = match self {
            Self::Local { data, .. } => data.command("audit log"),
            Self::Remote(remote) => {
                format!("crosstalk audit log --relay {}", shell::word(remote.url()))
            }
        };
        Failure::failed(format!("the log has no entry {what}")).help(format!(
            "`{log}` lists the entries. Write the whole id of a message that is not kept on this machine"
        ))
    }

    /// The failure that the last checkpoint was signed under another name than the relay has now.
    fn renamed(&self, before: &str, now: &str) -> Failure {
        let (before, now) = (escape(before), escape(now));
        let back = match self {
            Self::Local { data, .. } => format!(
                "start it with the earlier name again (`{} --name {}`), and export then",
                data.command("serve"),
                shell::word(&before)
            ),
            Self::Remote(_) => {
                "ask the relay operator to start it with the earlier name again".to_owned()
            }
        };
        Failure::failed(format!(
            "the last checkpoint of the log was signed as {before}, and the relay is called {now} now"
        ))
        .help(format!(
            "if the new name is a mistake, {back}; otherwise export after the next message, with which the relay signs \
             as {now}"
        ))
    }

    pub(crate) fn receipt(&mut self, id: &str) -> Result<LogReceipt, Failure> {
        if let Self::Remote(remote) = self {
            return Ok(remote.receipt(id)?);
        }
        let note = self.checkpoint(ChainId::FIRST)?;
        let Self::Local { store, data, .. } = self else {
            return Err(Failure::failed("the log is gone"));
        };
        let claim = Note::parse(&note).and_then(|n| n.claim());
        let size = claim.map_err(no_note)?.size;
        let index = store.log_index(id)?.filter(|i| *i < size);
        let index = index.ok_or_else(|| {
            Failure::failed(format!("the signed part of the log has no message `{id}`"))
        })?;
        let asked = LogQuery {
            from: index,
            limit: 1,
            ..LogQuery::default()
        };
        let entry = store.log_entries(&asked)?.pop();
        let path = store.log_inclusion(index, size)?;
        let (entry, path) = entry.zip(path).ok_or_else(|| short(size, data))?;
        Ok(LogReceipt {
            leaf: entry.leaf,
            index,
            path,
            note,
        })
    }
}

fn message(store: &SqliteStore, text: &str) -> Result<Option<String>, Failure> {
    match store.find(text)? {
        ReferenceMatch::Message(id) => Ok(Some(id)),
        // Messages of one thread may begin as it does.
        ReferenceMatch::Thread(thread) => {
            let upper = text.to_ascii_uppercase();
            let begins = |id: &String| id.starts_with(text) || id.starts_with(&upper);
            let all = lookup::whole(store, &thread)?.into_iter().map(|r| r.id);
            let mut found: Vec<String> = all.filter(begins).collect();
            match found.len() {
                0 | 1 => Ok(found.pop()),
                _ if found.iter().any(|id| id == text) => Ok(None),
                _ => Err(lookup::several(store, text, &found)?),
            }
        }
        ReferenceMatch::Several(ids) => Err(lookup::several(store, text, &ids)?),
        ReferenceMatch::Nothing => Ok(None),
    }
}

fn message_or_erased(store: &SqliteStore, text: &str) -> Result<Option<String>, Failure> {
    match message(store, text)? {
        None => erased(store, text),
        found => Ok(found),
    }
}

/// The erased message whose id begins so. Its text is gone, but the log has its id.
fn erased(store: &SqliteStore, text: &str) -> Result<Option<String>, Failure> {
    let upper = text.to_ascii_uppercase();
    let mut found = BTreeSet::new();
    let mut asked = LogQuery {
        kinds: vec![EventKind::Erased],
        limit: AT_ONCE,
        ..LogQuery::default()
    };
    loop {
        let part = store.log_entries(&asked)?;
        let Some(last) = part.last() else { break };
        asked.from = last.index + 1;
        let ids = part.into_iter().filter_map(|entry| entry.leaf.id);
        found.extend(ids.filter(|id| id.starts_with(text) || id.starts_with(&upper)));
    }
    match found.len() {
        0 | 1 => Ok(found.pop_first()),
        _ if found.contains(text) => Ok(None),
        _ => Err(Failure::failed(format!(
            "the ids of {} erased messages begin with `{text}`",
            found.len()
        ))
        .help("write more of the id")),
    }
}

fn thread(store: &SqliteStore, text: &str) -> Result<Option<String>, Failure> {
    match store.find(text)? {
        ReferenceMatch::Thread(id) => Ok(Some(id)),
        ReferenceMatch::Several(ids) => Err(lookup::several(store, text, &ids)?),
        ReferenceMatch::Message(_) | ReferenceMatch::Nothing => Ok(None),
    }
}

fn short(size: u64, data: &DataFolder) -> Failure {
    Failure::failed(format!("the log has no {size} entries")).help(format!(
        "`{}` says what is wrong with it",
        data.command("fsck")
    ))
}

/// Signs a checkpoint on behalf of a relay that is not running.
fn sign(
    store: &mut SqliteStore,
    data: &DataFolder,
    name: &str,
    size: u64,
) -> Result<String, Failure> {
    while store.store_hashes(64)? {}
    let root = store.log_root(size)?.ok_or_else(|| short(size, data))?;
    let checkpoint = Checkpoint {
        origin: name.to_owned(),
        size,
        root,
    };
    let note = checkpoint.sign(&data.require_key(name)?).map_err(no_note)?;
    store.keep_checkpoint(&SignedCheckpoint {
        size,
        at: clock::now(),
        root,
        note: note.clone(),
    })?;
    Ok(note)
}

/// A key of the command line: `name+hash+key` or a file with it; or what `--key` of `crosstalk verify` takes, for the log of this
/// name.
pub(crate) fn log_key(text: &str, name: &str) -> Result<NoteKey, Failure> {
    if let Some(key) = parse_note_key(text) {
        return Ok(key);
    }
    let key = public_key(text)?;
    NoteKey::new(name, key).map_err(|e| Failure::failed(format!("{text}: {e}")))
}

/// The key without its name.
pub(crate) fn any_public_key(text: &str) -> Result<PublicKey, Failure> {
    match parse_note_key(text) {
        Some(key) => Ok(*key.key()),
        None => public_key(text),
    }
}

/// A key that is written `name+hash+key`, here or in a file.
pub(crate) fn parse_note_key(text: &str) -> Option<NoteKey> {
    let written = match text.contains('+') && !Path::new(text).exists() {
        true => Some(text.to_owned()),
        false => std::fs::read_to_string(text).ok(),
    };
    NoteKey::parse(written?.trim()).ok()
}

/// The keys that are pinned for the relay of an origin, and those that its domain lists.
pub(crate) fn known_keys(origin: &str) -> Result<Vec<PublicKey>, Failure> {
    let trust = KeysAndTrust::open()?.trust()?;
    let (relay, chain) = ChainId::of_origin(origin);
    let own = keys_in(&trust, origin);
    Ok(match chain {
        ChainId::FIRST => own,
        _ => own.into_iter().chain(keys_in(&trust, relay)).collect(),
    })
}

/// The same, from trust data that was read.
pub(crate) fn keys_in(trust: &Trust, name: &str) -> Vec<PublicKey> {
    let pinned = trust.active(name).map(|k| k.key);
    let domain = trust.domain(name, clock::now());
    let said = domain.map(|d| d.keys.clone()).unwrap_or_default();
    pinned.into_iter().chain(said).collect()
}
