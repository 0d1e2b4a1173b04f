//! The seven chapters. Each performs its steps, checks the result, and fails if the result is wrong.

use super::page::ChapterPage;
use super::world::{
    ABLE, ANN, CRITIC, DemoMessage, NAME, SCOUT, Who, World, name_of, names_of, relayed, require,
};
use crate::failure::Failure;
use crate::paragraph::count;
use crate::report::PollReport;
use crate::service::audit_bundle::BundleFolder;
use crate::service::relay::archive::files_below;
use crate::{clock, json, view};
use crosstalk_envelope::{Builder, Document, ErrorCode, Intent, Reading, Timestamp, id, scan};
use crosstalk_protocol::audit::bundle::{self, Against, BundleContents, BundleReport, Wrong};
use crosstalk_protocol::audit::{ChainId, LogQuery, Note, NoteKey};
use crosstalk_protocol::poll::{Paper, collate, is_result};
use crosstalk_protocol::relay::{Role, check_hop};
use crosstalk_relay::client::{ClientError, MessageView};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;

pub(super) struct Chapter {
    pub(super) title: &'static str,
    pub(super) tell: Tell,
}

/// The steps of a chapter.
type Tell = fn(&mut World, &mut ChapterPage) -> Result<(), Failure>;

pub(super) const CHAPTERS: [Chapter; 7] = [
    chapter("Three participants", tell_people),
    chapter("A question and its answer", tell_question),
    chapter("A poll", tell_poll),
    chapter("A person is asked", tell_escalation),
    chapter("A hand-off with consent", tell_handoff),
    chapter("The consent is revoked", tell_revocation),
    chapter("The audit, without the relay", tell_audit),
];

pub(super) const fn chapter(title: &'static str, tell: Tell) -> Chapter {
    Chapter { title, tell }
}

const QUESTION: &str = "How long is the ridge trail, and when does the last bus go back?";
/// The sentence that Ann shares under her consent. No other text contains it.
const SECRET: &str = "Ann is allergic to bee stings and carries two adrenaline pens.";
/// Her consent, and the transfer that Scout makes of it.
const GRANT: &str = "ann-health-for-the-trip";
const TRANSFER: &str = "ann-health-for-critic";
const WANTED: &str = "Saturday";
/// How many bytes in a row are a trace of a text.
const TRACE_BYTES: usize = 16;

fn fail<T>(what: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::failed(what))
}

fn read(text: &str) -> Document<'_> {
    Document::parse(text, Reading::Strict)
}

fn with(builder: Builder, block: &str, fields: &[(&str, &str)]) -> Builder {
    let add = |builder: Builder, (key, value): &(&str, &str)| builder.meta(block, *key, *value);
    fields.iter().fold(builder, add)
}

fn tell_people(world: &mut World, page: &mut ChapterPage) -> Result<(), Failure> {
    page.say(
        "Ann is a person; Scout and Critic are agents. Each has an address, a key that was made a moment ago, and a token \
         for the relay between them. They have compared the fingerprints of their keys, so that from now on nobody can \
         speak in the name of another.",
    );
    let mut people: Vec<Value> = Vec::new();
    for one in world.cast() {
        let Some(known) = world.trust.active(one.pkid) else {
            return fail(format!("the key of {} is not pinned", one.name));
        };
        let kind = match one.role {
            Role::Agent => "agent",
            _ => "person",
        };
        let (name, address, key) = (one.name, one.address, known.key.fingerprint().to_string());
        page.checked(format!("{name} ({kind}) is {address}, key {key}"));
        people.push(json!({"name": name, "kind": kind, "address": address, "key": key}));
    }
    let key = world.log_key()?;
    require(key.name() == NAME, "the relay has another name")?;
    page.checked(format!(
        "The relay {NAME} listens at {} and signs with a key of its own.",
        world.url
    ));
    page.fact("participants", json!(people));
    page.fact("relay", json!(world.url));
    Ok(())
}

fn tell_question(world: &mut World, page: &mut ChapterPage) -> Result<(), Failure> {
    page.say(
        "Ann asks Scout something. A message is plain text: who to whom, what for, the words, a signature. It would look \
         the same in a mail or in a chat, where a person copies and pastes it.",
    );
    let question = world.begin(Who::Ann, SCOUT, "REQUEST").body(QUESTION);
    let (question, _) = exchange(world, page, (Who::Ann, Who::Scout), "question", &question)?;
    page.checked("Scout got it, and the signature is Ann's.");

    page.say("Scout answers. The answer names the question as its parent, so that a conversation is a tree and no pile.");
    let answer = world
        .begin(Who::Scout, ANN, "RESPOND")
        .parent(&question.id)
        .body("14 kilometres, about five hours. The last bus goes at 18:10.");
    let (answer, got) = exchange(world, page, (Who::Scout, Who::Ann), "answer", &answer)?;
    let parent = read(&got.envelope).envelope().parent == Some(question.id.as_str());
    require(parent, "the answer does not name the question")?;
    page.checked("Ann got it: signed by Scout, an answer to her question.");

    page.say("Somebody on the way changes one word of it: 18:10 becomes 19:10.");
    let forged = got.envelope.replace("18:10", "19:10");
    require(forged != got.envelope, "nothing was changed")?;
    let is_found = world.verified(&forged).is_err();
    require(is_found, "a changed message verifies")?;
    page.checked("The changed answer does not verify: Ann would be told not to act on it.");

    world.question = question.id;
    page.fact("question", json!(world.question));
    page.fact("answer", answer.id);
    page.fact("verified", true);
    page.fact("forgery_found", is_found);
    Ok(())
}

fn tell_poll(world: &mut World, page: &mut ChapterPage) -> Result<(), Failure> {
    page.say(
        "Which day shall it be? Ann asks all three, herself among them. A poll is one message to several; each answers \
         with a ballot, and the relay tells the asker as soon as everybody has answered.",
    );
    let thread = id::new_ulid();
    let targets = format!("[\"{ANN}\", \"{SCOUT}\", \"{CRITIC}\"]");
    let poll = [
        ("Type", "majority"),
        ("Options", "Friday | Saturday | Sunday"),
        ("Quorum", "2-of-3"),
    ];
    let call = world.begin(Who::Ann, "VOTERS", "POLL").thread(&thread);
    let call = with(call.meta("routing", "Targets", targets), "poll", &poll)
        .body("On which day do we go?");
    let call = world.post(Who::Ann, "poll", &call)?;
    show_accepted(page, &call);

    page.say(
        "Ann and Scout send ballots. Critic writes as people and models do: a sentence, and no ballot. It is read by a \
         careful rule: the first line has to begin with exactly one of the options.",
    );
    let in_prose = "Saturday, because thunderstorms are likely on Friday.";
    for (who, choice, words) in [
        (Who::Ann, Some("Saturday"), "I have the car on Saturday."),
        (Who::Scout, Some("Friday"), "There are fewer people."),
        (Who::Critic, None, in_prose),
    ] {
        let ballot = world.begin(who, ANN, "RESPOND").thread(&thread);
        let mut ballot = ballot.parent(&call.id).body(words);
        if let Some(choice) = choice {
            ballot = ballot.meta("vote", "Choice", choice);
        }
        let sent = world.post(who, "ballot", &ballot)?;
        if choice.is_none() {
            page.envelope(&sent.text, &sent.file);
        }
    }
    let closed = world.until("the poll is closed", || {
        let poll = world.ask(Who::Ann, async |c| c.poll(&call.id).await);
        let poll = relayed(poll, "the relay does not know the poll")?;
        let is_closed = poll.get("state").is_some_and(|state| state == "closed");
        Ok(is_closed.then_some(poll))
    })?;
    let report: PollReport = json::read(closed.clone())?;
    let outcome = report.outcome.as_deref();
    require(
        outcome == Some(WANTED),
        format!("{WANTED} should have come out, and it was {outcome:?}"),
    )?;
    let counted = report.counted.iter();
    let prose = counted.filter(|ballot| ballot.read_from == "first-line");
    let prose: Vec<String> = prose.map(|ballot| ballot.from.clone()).collect();
    page.poll(report);
    require(
        prose == [CRITIC],
        format!("read from prose: {prose:?}, and it should be Critic's answer alone"),
    )?;
    page.checked(format!(
        "{} answered in prose; the sentence was read from its first line, and the report says so.",
        names_of(&prose)
    ));
    let result = world.fetch(Who::Ann, "the result", |m| is_result(&read(&m.envelope)))?;
    recount(world, page, &thread, &result.envelope)?;

    let counted = ["outcome", "tally", "quorum", "counted", "missing"];
    for key in counted {
        page.fact(key, closed.get(key).cloned().unwrap_or_default());
    }
    page.fact("read_from_prose", json!(prose));
    page.fact("recounted", true);
    Ok(())
}

/// Counts once more, from a text file of the conversation alone: it has to be the message that the relay sent.
fn recount(
    world: &World,
    page: &mut ChapterPage,
    thread: &str,
    result: &str,
) -> Result<(), Failure> {
    let text = world.ask(Who::Ann, async |c| c.export(thread).await);
    let text = relayed(text, "the conversation can't be exported")?;
    let file = world.write("poll.crosstalk", &text)?;
    let key = world.log_key()?;
    let found = scan(&text, Reading::Strict);
    let papers = found.documents.iter().map(|document| Paper {
        // When the relay got it, if it signed that.
        hop: check_hop(document, key.key()).ok().map(|h| h.received_at),
        ..Paper::of(document)
    });
    let papers: Vec<Paper<'_>> = papers.collect();
    let result = read(result);
    let at = result.meta("collation", "At").and_then(Timestamp::parse);
    let again = collate(&papers, None, at);
    let again = again.map_err(|e| Failure::failed(format!("the poll can't be counted: {e}")))?;
    let again = again.to_envelopes(Some(thread));
    let again = again.map_err(|e| Failure::failed(format!("the result can't be written: {e}")))?;
    let is_same = again.iter().any(|text| {
        let own = read(text);
        own.envelope().message == result.envelope().message && own.body_text() == result.body_text()
    });
    require(is_same, "counted from text, something else comes out")?;
    page.checked(format!(
        "Counted once more from {file} alone: the same result, to the id of the message."
    ));
    Ok(())
}

fn tell_escalation(world: &mut World, page: &mut ChapterPage) -> Result<(), Failure> {
    page.say(
        "Scout finds a guide who wants a deposit of 240 EUR. That is more than an agent may promise, so Scout does not: \
         an ESCALATE goes to Ann, with the reason. She sees the conversation so far, and nobody has to tell it again.",
    );
    let reason = "the deposit is above my limit of 100 EUR";
    let escalation = world.begin(Who::Scout, ANN, "ESCALATE");
    let escalation = escalation.parent(&world.question);
    let fields = [("Reason", reason), ("Urgency", "today")];
    let escalation = with(escalation, "escalation", &fields)
        .body("The guide wants 240 EUR in advance. May I agree?");
    let (escalation, got) = exchange(
        world,
        page,
        (Who::Scout, Who::Ann),
        "escalation",
        &escalation,
    )?;
    let history = got.history.unwrap_or_default();
    let is_question = |text: &String| read(text).envelope().message == Some(&world.question);
    require(
        history.iter().any(is_question),
        "the conversation did not come with the escalation",
    )?;
    page.checked(format!(
        "It reached Ann with {} earlier messages of the conversation.",
        history.len()
    ));
    let decision = world
        .begin(Who::Ann, SCOUT, "RESPOND")
        .parent(&escalation.id)
        .body("Yes, up to 240 EUR, and not more.");
    let decision = world.post(Who::Ann, "decision", &decision)?;
    page.envelope(&decision.text, &decision.file);
    let back = world.fetch_verified(Who::Scout, "the decision", &decision)?;
    let is_answer = read(&back.envelope).envelope().meaning() == Some(Intent::Respond);
    require(is_answer, "the decision is no answer")?;
    page.checked("Scout has a person's word for it, signed, and can show it to anybody.");
    page.fact("escalation", escalation.id);
    page.fact("history", history.len());
    page.fact("decided_by", ANN);
    Ok(())
}

/// Writes into a message that Ann's consent was passed on.
fn transferred(builder: Builder, until: Timestamp) -> Builder {
    let fields = [
        ("PII", "present"),
        (
            "Consent",
            &format!("transferred_with_approval_{}", clock::now()),
        ),
        ("Scope", "medical"),
        ("Expires", &until.to_string()),
        ("Consent-ID", TRANSFER),
        ("Original-Consent-ID", GRANT),
    ];
    with(builder, "privacy", &fields)
}

fn tell_handoff(world: &mut World, page: &mut ChapterPage) -> Result<(), Failure> {
    page.say(
        "The guide has to know something about Ann's health. She tells Scout, and says what it may be used for: medical, \
         until a day next week, under a name by which she can revoke it.",
    );
    let end = world.end;
    let fields = [
        ("PII", "present"),
        ("Consent", &format!("explicit_yes_{}", clock::now())),
        ("Scope", "medical"),
        ("Expires", &end.to_string()),
        ("Consent-ID", GRANT),
    ];
    let grant = world.begin(Who::Ann, SCOUT, "BROADCAST");
    let grant = grant.meta("routing", "X-Policy", "ok_to_cache");
    let grant = with(grant, "privacy", &fields)
        .body(format!("For the guide, and for nobody else: {SECRET}"));
    exchange(world, page, (Who::Ann, Who::Scout), "consent", &grant)?;
    show_grant(world, page)?;

    page.say(
        "Scout hands the matter over to Critic, who writes to guides. A consent can be passed on, chained to the original, \
         and never wider or longer. Scout tries a month more than Ann gave.",
    );
    let needs = format!("[\"{ABLE}\"]");
    let handoff = world
        .begin(Who::Scout, CRITIC, "HANDOFF")
        .meta("routing", "X-Capabilities-Required", needs)
        .body(format!(
            "Please write to the guide. What he has to know: {SECRET}"
        ));
    let longer = transferred(handoff.clone(), clock::days_after(end, 30));
    let answer = world.try_post(Who::Scout, "handoff-too-long", &longer)?;
    show_rejected(page, answer, "a consent that was made longer")?;

    page.say("So Scout passes the consent on as it is.");
    let handoff = transferred(handoff, end);
    let (handoff, got) = exchange(world, page, (Who::Scout, Who::Critic), "handoff", &handoff)?;
    require(
        got.envelope.contains(SECRET),
        "what Critic has to know is not in the hand-off",
    )?;
    page.checked("Critic has it, and the name of the consent on which it depends.");

    page.say(
        "At this moment Critic asks the relay for a checkpoint of its log and keeps it: a few signed lines that nobody can \
         take back.",
    );
    world.sign_log()?;
    let held = world.ask(Who::Critic, async |c| c.checkpoint(ChainId::FIRST).await);
    world.held = relayed(held, "there is no checkpoint")?;
    let size = world.held.lines().nth(1).unwrap_or_default();
    page.checked(format!("It covers {size} entries."));
    page.fact("consent", GRANT);
    page.fact("transferred", TRANSFER);
    page.fact("longer_refused_with", ErrorCode::Consent.as_str());
    page.fact("handoff", handoff.id);
    Ok(())
}

/// Shows what the relay has on record about the consent.
fn show_grant(world: &World, page: &mut ChapterPage) -> Result<(), Failure> {
    let Some(found) = world.data.open()?.grant(GRANT)? else {
        return fail("the consent is not on record");
    };
    require(
        found.granter == ANN && found.revoked.is_none(),
        "the consent is on record for somebody else",
    )?;
    let until = found.expires.map(|t| t.to_string());
    page.checked(format!(
        "On record: {} for {}, given by {} to {}, until {}, by a message of a {} key.",
        found.id,
        found.scopes.join(", "),
        name_of(&found.granter),
        names_of(&found.to),
        until.as_deref().unwrap_or("nobody knows when"),
        found.assurance.as_str(),
    ));
    page.fact("assurance", found.assurance.as_str());
    Ok(())
}

fn tell_revocation(world: &mut World, page: &mut ChapterPage) -> Result<(), Failure> {
    page.say(
        "Scout sends Critic something more under the same consent. Critic is away, so it waits at the relay. Meanwhile the \
         trip is called off, and Ann revokes her consent.",
    );
    let more = world.begin(Who::Scout, CRITIC, "REQUEST");
    let more = more.body(format!(
        "Ask the guide whether he can handle this: {SECRET}"
    ));
    let waiting = world.post(Who::Scout, "waiting", &transferred(more, world.end))?;
    let status = world.ask(Who::Scout, async |c| c.status(&waiting.id).await);
    let status = relayed(status, "the relay does not know the message")?;
    let states: Vec<String> = status.deliveries.into_iter().map(|d| d.state).collect();
    require(
        states == ["queued"],
        format!("the message should wait, and it is {states:?}"),
    )?;
    let (before, _) = find_traces(world.data.folder())?;
    require(before > 0, "the files of the relay do not have the text")?;
    page.checked("The message waits, and Ann's sentence is in the files of the relay.");

    let fields = [("Consent-ID", GRANT), ("Reason", "the trip is called off")];
    let revoke = world.begin(Who::Ann, SCOUT, "REVOKE");
    let revoke =
        with(revoke, "revocation", &fields).body("Please forget what I told you about my health.");
    let revoke = world.post(Who::Ann, "revoke", &revoke)?;
    show_accepted(page, &revoke);

    page.say(
        "When the relay accepts a REVOKE, it has taken effect: waiting messages are cancelled, the texts are erased, also from \
         the search index, and Ann gets a list of what was erased.",
    );
    let confirmed = world.fetch(Who::Ann, "the confirmation", |m| {
        read(&m.envelope).block("withdrawal").is_some()
    })?;
    let file = world.write("confirmation.crosstalk", &confirmed.envelope)?;
    page.envelope(&confirmed.envelope, &file);
    let document = read(&confirmed.envelope);
    let said = |key| document.meta("withdrawal", key).unwrap_or_default();
    let number = |key| said(key).parse::<u64>().unwrap_or(0);
    let (erased, cancelled) = (number("Erased"), number("Cancelled"));
    require(
        (erased, cancelled) == (3, 1),
        format!("3 erased and 1 cancelled are right, and it was {erased} and {cancelled}"),
    )?;
    let revoked = said("Consents");
    require(
        revoked.contains(GRANT) && revoked.contains(TRANSFER),
        format!("only these consents are revoked: {revoked}"),
    )?;
    page.checked("Both consents are revoked: Ann's, and the one that Scout made of it.");
    require(
        world.inbox(Who::Critic)?.iter().all(|m| m.id != waiting.id),
        "what was cancelled is still handed out",
    )?;
    world.fetch(Who::Scout, "the news of it", |m| {
        let told = read(&m.envelope);
        let envelope = told.envelope();
        envelope.meaning() == Some(Intent::Error)
            && envelope.parent == Some(waiting.id.as_str())
            && told.meta("error", "Code") == Some(ErrorCode::Consent.as_str())
    })?;
    page.checked("Critic does not get what was waiting, and Scout was told why: E-CONSENT.");
    let files = world.until("the files of the relay are clean", || {
        let (traces, files) = find_traces(world.data.folder())?;
        Ok((traces == 0).then_some(files))
    })?;
    page.checked(format!(
        "Looked through {files} files of the relay, write-ahead log and all: not {TRACE_BYTES} bytes in a row of Ann's sentence \
         are left."
    ));

    page.say("And it stays so. Scout tries once more, under the revoked consent.");
    let again = world.begin(Who::Scout, CRITIC, "REQUEST");
    let again = transferred(again.body("Did you write to the guide?"), world.end);
    let answer = world.try_post(Who::Scout, "too-late", &again)?;
    show_rejected(page, answer, "a message under a consent that was revoked")?;
    page.say(
        "A REVOKE can't reach the copies of others: the envelopes that the three keep for themselves stay with them.",
    );
    page.fact("erased", erased);
    page.fact("cancelled", cancelled);
    page.fact("files_with_text_before", before);
    page.fact("files_with_text_after", 0);
    page.fact("refused_with", ErrorCode::Consent.as_str());
    Ok(())
}

/// In how many files below a folder a part of the sentence is, in whatever case of letters, and how many files there are.
fn find_traces(folder: &Path) -> Result<(usize, usize), Failure> {
    let sentence = SECRET.to_ascii_lowercase();
    let runs: HashSet<&[u8]> = sentence.as_bytes().windows(TRACE_BYTES).collect();
    let files = files_below(folder)?;
    let has_trace = |path: &&std::path::PathBuf| {
        // A file of the store may be gone again.
        let bytes = std::fs::read(path).unwrap_or_default().to_ascii_lowercase();
        bytes.windows(TRACE_BYTES).any(|run| runs.contains(run))
    };
    Ok((files.iter().filter(has_trace).count(), files.len()))
}

fn tell_audit(world: &mut World, page: &mut ChapterPage) -> Result<(), Failure> {
    page.say(
        "Everything that the relay accepted, rejected, delivered and erased is an entry of a log, and the log is a Merkle tree \
         whose root it signs. The operator exports it as a folder of text files; the key of the relay comes over another \
         channel.",
    );
    let (key, mut files) = export(world)?;
    let folder = world.folder().to_owned();
    let (whole, changed) = (folder.join("bundle"), folder.join("tampered"));
    BundleFolder::at(&whole).write(&files, &mut |_| {})?;
    put(&folder.join("relay.key"), &format!("{key}\n"))?;
    put(&folder.join("held.note"), &world.held)?;
    page.checked(format!(
        "bundle/ has {}: key, checkpoint, entries, details, and each message that still has a text.",
        count(files.len(), "file")
    ));

    world.stop();
    require(
        world.run(world.admin.checkpoint(ChainId::FIRST)).is_err(),
        "the relay was stopped and still answers",
    )?;
    page.checked("The relay is stopped, and does not answer any more.");

    page.say(
        "Now somebody who was not there checks: the signature, the tree, each message, and whether the log still begins with \
         what Critic kept of it.",
    );
    let held = [world.held.clone()];
    let checked = verify(&whole, &key, &held);
    let checked = checked.map_err(|w| Failure::failed(format!("the bundle does not hold: {w}")))?;
    require(
        checked.is_all && checked.extended == 1 && checked.erased == 3,
        format!(
            "the bundle should be whole, extend one checkpoint and miss 3 texts: {}, {}, {}",
            checked.is_all, checked.extended, checked.erased
        ),
    )?;
    let kinds = checked.kinds.iter();
    let kinds: Vec<String> = kinds
        .map(|(kind, n)| format!("{n} {}", kind.as_str()))
        .collect();
    let size = checked.checkpoint.size;
    page.checked(format!("It holds: {size} entries ({}).", kinds.join(", ")));
    page.checked(format!(
        "{} messages are the texts that were accepted. {} are erased, and the log still proves that they were there.",
        checked.messages, checked.erased
    ));
    page.checked("It extends the checkpoint that Critic kept: nothing before was rewritten.");

    page.say("In a copy, one byte of one message is changed.");
    let mut texts = files.iter_mut();
    let asked = |text: &str| text.contains(QUESTION) && text.contains("intent: REQUEST");
    let Some((name, text)) = texts.find(|(_, text)| asked(text)) else {
        return fail("the question is not in the bundle");
    };
    *text = text.replacen("last bus", "lost bus", 1);
    let name = name.clone();
    BundleFolder::at(&changed).write(&files, &mut |_| {})?;
    let Err(wrong) = verify(&changed, &key, &held) else {
        return fail("the change was not found");
    };
    require(
        wrong.file == name,
        format!("the change is in {name}, and this was found: {wrong}"),
    )?;
    page.checked(format!("It was found, at its place. {wrong}"));
    page.fact("entries", size);
    page.fact("messages", checked.messages);
    page.fact("erased", checked.erased);
    page.fact("extends_held_checkpoint", checked.extended == 1);
    page.fact("verified_offline", true);
    page.fact("tampering_found_in", wrong.file);
    Ok(())
}

/// The key of the log, and the files of the bundle.
fn export(world: &World) -> Result<(NoteKey, Vec<(String, String)>), Failure> {
    world.sign_log()?;
    let admin = &world.admin;
    let key = world.log_key()?;
    let note = relayed(
        world.run(admin.checkpoint(ChainId::FIRST)),
        "there is no checkpoint",
    )?;
    let signed = Note::parse(&note).and_then(|n| n.open(&key));
    let signed = signed.map_err(|e| Failure::failed(format!("the checkpoint: {e}")))?;
    let asked = LogQuery {
        to: Some(signed.size),
        limit: 500,
        texts: Some(clock::now()),
        ..LogQuery::default()
    };
    let (_, entries) = relayed(world.run(admin.entries(&asked)), "the log can't be read")?;
    let is_all = entries.len() as u64 == signed.size;
    require(is_all, "the log has fewer entries than it signs")?;
    let files = bundle::write(&BundleContents {
        key: &key,
        note: &note,
        entries: &entries,
        proofs: None,
        consistency: &[],
    });
    Ok((key, files))
}

fn verify(folder: &Path, key: &NoteKey, held: &[String]) -> Result<BundleReport, Wrong> {
    let against = Against::new(Some(key), held);
    bundle::check(&BundleFolder::at(folder), &against, &mut |_, _| {})
}

fn put(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| Failure::at(path, e))
}

/// One participant posts a message, and the other one fetches and verifies it.
fn exchange(
    world: &mut World,
    page: &mut ChapterPage,
    (from, to): (Who, Who),
    name: &str,
    message: &Builder,
) -> Result<(DemoMessage, MessageView), Failure> {
    let posted = world.post(from, name, message)?;
    show_accepted(page, &posted);
    let got = world.fetch_verified(to, &format!("the {name}"), &posted)?;
    Ok((posted, got))
}

/// Shows an envelope, and the receipt of the relay.
fn show_accepted(page: &mut ChapterPage, posted: &DemoMessage) {
    page.envelope(&posted.text, &posted.file);
    let entry = match posted.receipt.index {
        Some(index) => format!("entry {index} of its log"),
        None => "no entry in its log".to_owned(),
    };
    let digest: String = posted.receipt.digest.chars().take(19).collect();
    page.checked(format!("The relay accepted it: {entry}, {digest}…"));
}

/// Shows why the relay rejected a message: it has to be for want of consent.
fn show_rejected(
    page: &mut ChapterPage,
    answer: Result<DemoMessage, ClientError>,
    what: &str,
) -> Result<(), Failure> {
    match answer {
        Err(ClientError::Rejected(refused)) if refused.code == Some(ErrorCode::Consent) => {
            let said = view::first_line(&refused.detail);
            page.checked(format!("The relay rejected that with E-CONSENT: {said}"));
            Ok(())
        }
        Err(other) => fail(format!(
            "the relay has to reject {what} for want of consent, and it was for another reason: {other}"
        )),
        Ok(_) => fail(format!("the relay accepted {what}, which it has to reject")),
    }
}
