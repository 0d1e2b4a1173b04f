//! What happened is checked from text files, after the relay is gone.

use super::super::page::Page;
use super::super::world::{World, relayed, require};
use super::question;
use crate::command::audit::Folder;
use crate::failure::Failure;
use crate::paragraph::count;
use crosstalk_protocol::audit::bundle::{self, Against, Checked, Contents, Wrong};
use crosstalk_protocol::audit::{LogEntry, LogQuery, Note, NoteKey};
use std::path::Path;

pub(super) fn tell(world: &mut World, page: &mut Page) -> Result<(), Failure> {
    page.say(
        "Everything that the relay took, refused, delivered and erased is an entry of a log, and the log is a Merkle tree \
         whose root it signs. The operator exports it as a folder of text files; the key of the relay comes by another way.",
    );
    let (key, files) = export(world)?;
    let folder = world.folder().to_owned();
    let (whole, changed) = (folder.join("bundle"), folder.join("tampered"));
    save(&whole, &files)?;
    put(&folder.join("relay.key"), &format!("{key}\n"))?;
    put(&folder.join("held.note"), &world.held)?;
    page.checked(format!(
        "bundle/ has {}: key, checkpoint, entries, details, and each message that still has a text.",
        count(files.len(), "file")
    ));

    world.stop();
    require(
        world.run(world.admin.checkpoint()).is_err(),
        "the relay was stopped and still answers",
    )?;
    page.checked("The relay is stopped: nobody answers there any more.");

    page.say(
        "Now somebody who was not there checks: the signature, the tree, each message, and whether the log still begins with \
         what Critic kept of it.",
    );
    let held = [world.held.clone()];
    let checked = verify(&whole, &key, &held);
    let checked = checked.map_err(|w| Failure::Failed(format!("the bundle does not hold: {w}")))?;
    require(
        checked.is_all && checked.extended == 1 && checked.erased == 3,
        format!(
            "the bundle should be whole, extend one checkpoint and miss 3 texts: {}, {}, {}",
            checked.is_all, checked.extended, checked.erased
        ),
    )?;
    let kinds: Vec<String> = checked
        .kinds
        .iter()
        .map(|(kind, n)| format!("{n} {}", kind.as_str()))
        .collect();
    page.checked(format!(
        "It holds: {} entries ({}).",
        checked.checkpoint.size,
        kinds.join(", ")
    ));
    page.checked(format!(
        "{} messages are the texts that were taken. {} are erased, and that they were there is still proven.",
        checked.messages, checked.erased
    ));
    page.checked("It extends the checkpoint that Critic kept: nothing before was rewritten.");

    page.say("In a copy, one byte of one message is changed.");
    let (name, other) = change(&files)?;
    let files: Vec<(String, String)> = files
        .into_iter()
        .map(|(n, text)| {
            if n == name {
                (n, other.clone())
            } else {
                (n, text)
            }
        })
        .collect();
    save(&changed, &files)?;
    let wrong = match verify(&changed, &key, &held) {
        Err(wrong) => wrong,
        Ok(_) => return Err(Failure::Failed("the change was not found".into())),
    };
    require(
        wrong.file == name,
        format!("the change is in {name}, and this was found: {wrong}"),
    )?;
    page.checked(format!("It was found, at its place. {wrong}"));
    page.fact("entries", checked.checkpoint.size);
    page.fact("messages", checked.messages);
    page.fact("erased", checked.erased);
    page.fact("extends_held_checkpoint", checked.extended == 1);
    page.fact("verified_offline", true);
    page.fact("tampering_found_in", wrong.file);
    Ok(())
}

/// The key of the log, and the files of the bundle.
fn export(world: &World) -> Result<(NoteKey, Vec<(String, String)>), Failure> {
    let tended = world.run(world.relay.tend_log());
    tended.map_err(|e| Failure::Failed(format!("the log can't be signed: {e}")))?;
    let admin = &world.admin;
    let key = relayed(world.run(admin.log_key()), "the relay does not say its key")?;
    let note = relayed(world.run(admin.checkpoint()), "there is no checkpoint")?;
    let signed = Note::parse(&note).and_then(|n| n.open(&key));
    let size = signed
        .map_err(|e| Failure::Failed(format!("the checkpoint: {e}")))?
        .size;
    let mut entries: Vec<LogEntry> = Vec::new();
    while let Some(from) = Some(entries.len() as u64).filter(|n| *n < size) {
        let asked = LogQuery {
            from,
            to: Some(size),
            most: 500,
            texts: Some(crate::clock::now()),
            ..LogQuery::default()
        };
        let (_, more) = relayed(world.run(admin.entries(&asked)), "the log can't be read")?;
        require(!more.is_empty(), "the log has fewer entries than it signs")?;
        entries.extend(more);
    }
    let files = bundle::write(&Contents {
        key: &key,
        note: &note,
        entries: &entries,
        proofs: None,
        consistency: &[],
    });
    Ok((key, files))
}

fn verify(folder: &Path, key: &NoteKey, held: &[String]) -> Result<Checked, Wrong> {
    let against = Against {
        key: Some(key),
        held,
    };
    bundle::check(&Folder::at(folder), &against, &mut |_, _| {})
}

/// The message with the question, one byte of it changed; and its name.
fn change(files: &[(String, String)]) -> Result<(String, String), Failure> {
    let asked = files
        .iter()
        .find(|(_, text)| text.contains(question::QUESTION) && text.contains("intent: REQUEST"));
    let (name, text) =
        asked.ok_or_else(|| Failure::Failed("the question is not in the bundle".into()))?;
    Ok((name.clone(), text.replacen("last bus", "lost bus", 1)))
}

fn save(folder: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    let messages = folder.join("messages");
    std::fs::create_dir_all(&messages)
        .map_err(|e| Failure::Io(messages.to_string_lossy().into_owned(), e))?;
    files
        .iter()
        .try_for_each(|(name, text)| put(&folder.join(name), text))
}

fn put(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| Failure::Io(path.to_string_lossy().into_owned(), e))
}
