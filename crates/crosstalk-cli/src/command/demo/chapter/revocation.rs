//! The consent is withdrawn, and everything under it goes.

use super::super::cast::{CRITIC, SCOUT};
use super::super::page::Page;
use super::super::world::{Who, World, relayed, require};
use super::handoff::{SECRET, transferred};
use super::{refusal, taken};
use crate::failure::Failure;
use crosstalk_envelope::{Document, ErrorCode, Intent, Reading};
use std::collections::HashSet;
use std::path::Path;

/// How many bytes in a row are a trace.
const RUN: usize = 16;

pub(super) fn tell(world: &mut World, page: &mut Page) -> Result<(), Failure> {
    page.say(
        "Scout sends Critic something more under the same consent. Critic is away, so it waits at the relay. Meanwhile the \
         trip is called off, and Ann withdraws her consent.",
    );
    let more = world.letter(Who::Scout, CRITIC, "REQUEST").body(format!(
        "Ask the guide whether he can handle this: {SECRET}"
    ));
    let waiting = world.post(Who::Scout, "waiting", &transferred(more, world.end))?;
    let states = states(world, &waiting.id)?;
    require(
        states == ["queued"],
        format!("the message should wait, and it is {states:?}"),
    )?;
    let before = traces(world.data.folder())?;
    require(!before.is_empty(), "the relay never had the text")?;
    page.checked("The message waits, and Ann's sentence is found in the files of the relay.");

    let [consent, passed_on] = world.consents.clone();
    let revoke = world
        .letter(Who::Ann, SCOUT, "REVOKE")
        .meta("revocation", "Consent-ID", &consent)
        .meta("revocation", "Reason", "the trip is called off")
        .body("Please forget what I told you about my health.");
    let revoke = world.post(Who::Ann, "revoke", &revoke)?;
    taken(page, &revoke);

    page.say(
        "When the relay says that it took a REVOKE, it is done: what waits is cancelled, the texts are erased with the words \
         of the index, and who withdrew gets a list of what was erased.",
    );
    let confirmed = world.fetch(Who::Ann, "the confirmation", |m| {
        let document = Document::parse(&m.envelope, Reading::Strict);
        document.block("withdrawal").is_some()
    })?;
    let file = world.write("confirmation.crosstalk", &confirmed.envelope)?;
    page.envelope(&confirmed.envelope, &file);
    let document = Document::parse(&confirmed.envelope, Reading::Strict);
    let number = |key| {
        let said = document.meta("withdrawal", key);
        said.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
    };
    let (erased, cancelled) = (number("Erased"), number("Cancelled"));
    require(
        (erased, cancelled) == (3, 1),
        format!("3 erased and 1 cancelled are right, and it was {erased} and {cancelled}"),
    )?;
    let ended = document.meta("withdrawal", "Consents").unwrap_or_default();
    require(
        ended.contains(&consent) && ended.contains(&passed_on),
        format!("only these consents have ended: {ended}"),
    )?;
    page.checked("Both consents have ended: Ann's, and the one that Scout made of it.");
    let left = world.inbox(Who::Critic)?;
    require(
        left.iter().all(|m| m.id != waiting.id),
        "what was cancelled is still handed out",
    )?;
    world.fetch(Who::Scout, "the news of it", |m| {
        let told = Document::parse(&m.envelope, Reading::Strict);
        let envelope = told.envelope();
        envelope.meaning() == Some(Intent::Error)
            && envelope.parent == Some(waiting.id.as_str())
            && told.meta("error", "Code") == Some(ErrorCode::Consent.as_str())
    })?;
    page.checked("Critic does not get what was waiting, and Scout was told why: E-CONSENT.");
    let files = world.until("the files of the relay are clean", || {
        Ok(traces(world.data.folder())?
            .is_empty()
            .then(|| count(world.data.folder())))
    })??;
    page.checked(format!(
        "Looked through {files} files of the relay, write-ahead log and all: not {RUN} bytes in a row of Ann's sentence \
         are left."
    ));

    page.say("And it stays so. Scout tries once more, under the name of the consent that was.");
    let again = world
        .letter(Who::Scout, CRITIC, "REQUEST")
        .body("Did you write to the guide?");
    let answer = world.try_post(Who::Scout, "too-late", &transferred(again, world.end))?;
    let said = refusal(answer, "a message under a consent that was withdrawn")?;
    page.checked(format!("The relay refused that with E-CONSENT: {said}"));
    page.say(
        "What others have read or copied is out of reach, here as everywhere: the envelopes that the three keep for \
         themselves are their own.",
    );
    page.fact("erased", erased);
    page.fact("cancelled", cancelled);
    page.fact("files_with_text_before", before.len());
    page.fact("files_with_text_after", 0);
    page.fact("refused_with", ErrorCode::Consent.as_str());
    Ok(())
}

/// How far the deliveries of a message are.
fn states(world: &World, id: &str) -> Result<Vec<String>, Failure> {
    let status = world.ask(Who::Scout, async |c| c.status(id).await);
    let status = relayed(status, "the relay does not know the message")?;
    Ok(status.deliveries.into_iter().map(|d| d.state).collect())
}

/// The files under a folder.
fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => files(&path, found)?,
            false => found.push(path),
        }
    }
    Ok(())
}

fn all(folder: &Path) -> Result<Vec<std::path::PathBuf>, Failure> {
    let mut found = Vec::new();
    let walked = files(folder, &mut found);
    walked.map_err(|e| Failure::Io(folder.to_string_lossy().into_owned(), e))?;
    found.sort();
    Ok(found)
}

fn count(folder: &Path) -> Result<usize, Failure> {
    Ok(all(folder)?.len())
}

/// The names of the files in which a part of the sentence is, in whatever case of letters.
fn traces(folder: &Path) -> Result<Vec<String>, Failure> {
    let sentence = SECRET.to_ascii_lowercase();
    let runs: HashSet<&[u8]> = sentence.as_bytes().windows(RUN).collect();
    let mut found = Vec::new();
    for path in all(folder)? {
        // A file of the store may be gone again.
        let bytes = std::fs::read(&path).unwrap_or_default();
        let bytes = bytes.to_ascii_lowercase();
        if bytes.windows(RUN).any(|run| runs.contains(run)) {
            let name = path.strip_prefix(folder).unwrap_or(&path);
            found.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(found)
}
