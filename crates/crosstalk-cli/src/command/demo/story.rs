//! The seven chapters. Each performs its steps, checks the result, and fails if the result is wrong.

use super::stage::{
    ABLE, ANN, CRITIC, NAME, SCOUT, Stage, Who, fail, name_of, names_of, read, require,
};
use crate::failure::Failure;
use crate::paragraph::count;
use crate::report::PollReport;
use crate::service::audit_bundle::BundleFolder;
use crate::service::relay::archive::files_below;
use crate::{clock, json};
use crosstalk_envelope::{Builder, ErrorCode, Intent, Reading, Timestamp, id, scan};
use crosstalk_protocol::audit::bundle::{self, Against, BundleContents, BundleReport, Wrong};
use crosstalk_protocol::audit::{ChainId, LogQuery, NoteKey};
use crosstalk_protocol::poll::{Paper, collate, is_result};
use crosstalk_protocol::relay::{Role, check_hop};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;

pub(super) struct Chapter {
    pub(super) title: &'static str,
    pub(super) tell: Tell,
}

/// The steps of a chapter.
type Tell = fn(&mut Stage) -> Result<(), Failure>;

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

fn with(builder: Builder, block: &str, fields: &[(&str, &str)]) -> Builder {
    let add = |builder: Builder, (key, value): &(&str, &str)| builder.meta(block, *key, *value);
    fields.iter().fold(builder, add)
}

fn tell_people(stage: &mut Stage) -> Result<(), Failure> {
    stage.say(
        "Ann is a person; Scout and Critic are agents. Each has an address, a key that was made a moment ago, and a token \
         for the relay between them. They have compared the fingerprints of their keys, so that from now on nobody can \
         speak in the name of another.",
    );
    let mut people: Vec<Value> = Vec::new();
    for one in stage.cast() {
        let Some(known) = stage.trust.active(&one.pkid) else {
            return fail(format!("the key of {} is not pinned", one.name));
        };
        let kind = match one.role {
            Role::Agent => "agent",
            _ => "person",
        };
        let key = known.key.fingerprint().to_string();
        people.push(json!({"name": one.name, "kind": kind, "address": one.address, "key": key}));
    }
    for one in &people {
        let said = |key: &str| one[key].as_str().unwrap_or_default();
        stage.checked(format!(
            "{} ({}) is {}, key {}",
            said("name"),
            said("kind"),
            said("address"),
            said("key")
        ));
    }
    stage.check(
        stage.log.key(ChainId::FIRST)?.name() == NAME,
        format!(
            "The relay {NAME} listens at {} and signs with a key of its own.",
            stage.url
        ),
        "the relay has another name",
    )?;
    stage.fact("participants", people);
    stage.fact("relay", stage.url.clone());
    Ok(())
}

fn tell_question(stage: &mut Stage) -> Result<(), Failure> {
    stage.say(
        "Ann asks Scout something. A message is plain text: who to whom, what for, the words, a signature. It would look \
         the same in a mail or in a chat, where a person copies and pastes it.",
    );
    let question = stage.begin(Who::Ann, SCOUT, "REQUEST").body(QUESTION);
    let (question, _) = stage.exchange((Who::Ann, Who::Scout), "question", &question)?;
    stage.checked("Scout got it, and the signature is Ann's.");

    stage.say("Scout answers. The answer names the question as its parent, so that a conversation is a tree and no pile.");
    let answer = stage
        .begin(Who::Scout, ANN, "RESPOND")
        .parent(&question.id)
        .body("14 kilometres, about five hours. The last bus goes at 18:10.");
    let (answer, got) = stage.exchange((Who::Scout, Who::Ann), "answer", &answer)?;
    stage.check(
        read(&got.envelope).envelope().parent == Some(&question.id),
        "Ann got it: signed by Scout, an answer to her question.",
        "the answer does not name the question",
    )?;

    stage.say("Somebody on the way changes one word of it: 18:10 becomes 19:10.");
    let forged = got.envelope.replace("18:10", "19:10");
    require(forged != got.envelope, "nothing was changed")?;
    stage.check(
        stage.verify(&forged).is_err(),
        "The changed answer does not verify: Ann would be told not to act on it.",
        "a changed message verifies",
    )?;

    stage.question = question.id;
    stage.fact("question", stage.question.clone());
    stage.fact("answer", answer.id);
    stage.fact("verified", true);
    stage.fact("forgery_found", true);
    Ok(())
}

fn tell_poll(stage: &mut Stage) -> Result<(), Failure> {
    stage.say(
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
    let call = stage.begin(Who::Ann, "VOTERS", "POLL").thread(&thread);
    let call = with(call.meta("routing", "Targets", targets), "poll", &poll)
        .body("On which day do we go?");
    let call = stage.post_shown(Who::Ann, "poll", &call)?;

    stage.say(
        "Ann and Scout send ballots. Critic writes as people and models do: a sentence, and no ballot. It is read by a \
         careful rule: the first line has to begin with exactly one of the options.",
    );
    let in_prose = "Saturday, because thunderstorms are likely on Friday.";
    for (who, choice, words) in [
        (Who::Ann, Some("Saturday"), "I have the car on Saturday."),
        (Who::Scout, Some("Friday"), "There are fewer people."),
        (Who::Critic, None, in_prose),
    ] {
        let ballot = stage.begin(who, ANN, "RESPOND").thread(&thread);
        let mut ballot = ballot.parent(&call.id).body(words);
        if let Some(choice) = choice {
            ballot = ballot.meta("vote", "Choice", choice);
        }
        let sent = stage.post(who, "ballot", &ballot)?;
        if choice.is_none() {
            stage.page.envelope(&sent.text, &sent.file);
        }
    }
    let closed = stage.until("the poll is closed", || {
        let poll = stage.of(Who::Ann).relay.poll(&call.id)?;
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
    stage.page.poll(report);
    stage.check(
        prose == [CRITIC],
        format!(
            "{} answered in prose; the sentence was read from its first line, and the report says so.",
            names_of(&prose)
        ),
        format!("read from prose: {prose:?}, and it should be Critic's answer alone"),
    )?;
    let result = stage.fetch(Who::Ann, "the result", |m| is_result(&read(&m.envelope)))?;
    recount(stage, &thread, &result.envelope)?;

    for key in ["outcome", "tally", "quorum", "counted", "missing"] {
        stage.fact(key, closed.get(key).cloned().unwrap_or_default());
    }
    stage.fact("read_from_prose", prose);
    stage.fact("recounted", true);
    Ok(())
}

/// Counts once more, from a text file of the conversation alone: it has to be the message that the relay sent.
fn recount(stage: &mut Stage, thread: &str, result: &str) -> Result<(), Failure> {
    let text = stage.of(Who::Ann).relay.export(thread)?;
    let file = stage.write("poll.crosstalk", &text)?;
    let key = stage.log.key(ChainId::FIRST)?;
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
    stage.check(
        is_same,
        format!("Counted once more from {file} alone: the same result, to the id of the message."),
        "counted from text, something else comes out",
    )
}

fn tell_escalation(stage: &mut Stage) -> Result<(), Failure> {
    stage.say(
        "Scout finds a guide who wants a deposit of 240 EUR. That is more than an agent may promise, so Scout does not: \
         an ESCALATE goes to Ann, with the reason. She sees the conversation so far, and nobody has to tell it again.",
    );
    let escalation = stage.begin(Who::Scout, ANN, "ESCALATE");
    let reason = "the deposit is above my limit of 100 EUR";
    let fields = [("Reason", reason), ("Urgency", "today")];
    let escalation = with(escalation.parent(&stage.question), "escalation", &fields)
        .body("The guide wants 240 EUR in advance. May I agree?");
    let (escalation, got) = stage.exchange((Who::Scout, Who::Ann), "escalation", &escalation)?;
    let history = got.history.unwrap_or_default();
    let is_question = |text: &String| read(text).envelope().message == Some(&stage.question);
    stage.check(
        history.iter().any(is_question),
        format!(
            "It reached Ann with {} earlier messages of the conversation.",
            history.len()
        ),
        "the conversation did not come with the escalation",
    )?;
    let decision = stage
        .begin(Who::Ann, SCOUT, "RESPOND")
        .parent(&escalation.id)
        .body("Yes, up to 240 EUR, and not more.");
    let decision = stage.post(Who::Ann, "decision", &decision)?;
    stage.page.envelope(&decision.text, &decision.file);
    let back = stage.fetch_verified(Who::Scout, "the decision", &decision)?;
    stage.check(
        read(&back.envelope).envelope().meaning() == Some(Intent::Respond),
        "Scout has a person's word for it, signed, and can show it to anybody.",
        "the decision is no answer",
    )?;
    stage.fact("escalation", escalation.id);
    stage.fact("history", history.len());
    stage.fact("decided_by", ANN);
    Ok(())
}

/// Writes into a message that Ann's consent was passed on.
fn transferred(builder: Builder, until: Timestamp) -> Builder {
    let approved = format!("transferred_with_approval_{}", clock::now());
    let chain = [("Consent-ID", TRANSFER), ("Original-Consent-ID", GRANT)];
    with(consented(builder, &approved, until), "privacy", &chain)
}

/// Writes into a message what may be done with Ann's sentence, and until when.
fn consented(builder: Builder, consent: &str, until: Timestamp) -> Builder {
    let fields = [
        ("PII", "present"),
        ("Consent", consent),
        ("Scope", "medical"),
        ("Expires", &until.to_string()),
    ];
    with(builder, "privacy", &fields)
}

fn tell_handoff(stage: &mut Stage) -> Result<(), Failure> {
    stage.say(
        "The guide has to know something about Ann's health. She tells Scout, and says what it may be used for: medical, \
         until a day next week, under a name by which she can revoke it.",
    );
    let end = stage.end;
    let grant = stage.begin(Who::Ann, SCOUT, "BROADCAST");
    let grant = grant.meta("routing", "X-Policy", "ok_to_cache");
    let grant = consented(grant, &format!("explicit_yes_{}", clock::now()), end)
        .meta("privacy", "Consent-ID", GRANT)
        .body(format!("For the guide, and for nobody else: {SECRET}"));
    stage.exchange((Who::Ann, Who::Scout), "consent", &grant)?;
    show_grant(stage)?;

    stage.say(
        "Scout hands the matter over to Critic, who writes to guides. A consent can be passed on, chained to the original, \
         and never wider or longer. Scout tries a month more than Ann gave.",
    );
    let needs = format!("[\"{ABLE}\"]");
    let handoff = stage
        .begin(Who::Scout, CRITIC, "HANDOFF")
        .meta("routing", "X-Capabilities-Required", needs)
        .body(format!(
            "Please write to the guide. What he has to know: {SECRET}"
        ));
    let longer = transferred(handoff.clone(), clock::days_after(end, 30));
    let what = "a consent that was made longer";
    stage.post_rejected(Who::Scout, "handoff-too-long", &longer, what)?;

    stage.say("So Scout passes the consent on as it is.");
    let handoff = transferred(handoff, end);
    let (handoff, got) = stage.exchange((Who::Scout, Who::Critic), "handoff", &handoff)?;
    stage.check(
        got.envelope.contains(SECRET),
        "Critic has it, and the name of the consent on which it depends.",
        "what Critic has to know is not in the hand-off",
    )?;

    stage.say(
        "At this moment Critic asks the relay for a checkpoint of its log and keeps it: a few signed lines that nobody can \
         take back.",
    );
    stage.sign_log()?;
    stage.held = stage.of(Who::Critic).relay.checkpoint(ChainId::FIRST)?;
    let size = stage.held.lines().nth(1).unwrap_or_default();
    stage.checked(format!("It covers {size} entries."));
    stage.fact("consent", GRANT);
    stage.fact("transferred", TRANSFER);
    stage.fact("longer_refused_with", ErrorCode::Consent.as_str());
    stage.fact("handoff", handoff.id);
    Ok(())
}

/// Shows what the relay has on record about the consent.
fn show_grant(stage: &mut Stage) -> Result<(), Failure> {
    let Some(found) = stage.data.open()?.grant(GRANT)? else {
        return fail("the consent is not on record");
    };
    let until = found.expires.map(|t| t.to_string());
    stage.check(
        found.granter == ANN && found.revoked.is_none(),
        format!(
            "On record: {} for {}, given by {} to {}, until {}, by a message of a {} key.",
            found.id,
            found.scopes.join(", "),
            name_of(&found.granter),
            names_of(&found.to),
            until.as_deref().unwrap_or("nobody knows when"),
            found.assurance.as_str(),
        ),
        "the consent is on record for somebody else",
    )?;
    stage.fact("assurance", found.assurance.as_str());
    Ok(())
}

fn tell_revocation(stage: &mut Stage) -> Result<(), Failure> {
    stage.say(
        "Scout sends Critic something more under the same consent. Critic is away, so it waits at the relay. Meanwhile the \
         trip is called off, and Ann revokes her consent.",
    );
    let more = stage.begin(Who::Scout, CRITIC, "REQUEST");
    let more = more.body(format!(
        "Ask the guide whether he can handle this: {SECRET}"
    ));
    let waiting = stage.post(Who::Scout, "waiting", &transferred(more, stage.end))?;
    let status = stage.of(Who::Scout).relay.status(&waiting.id)?;
    let states: Vec<String> = status.deliveries.into_iter().map(|d| d.state).collect();
    require(
        states == ["queued"],
        format!("the message should wait, and it is {states:?}"),
    )?;
    let (before, _) = find_traces(stage.data.folder())?;
    stage.check(
        before > 0,
        "The message waits, and Ann's sentence is in the files of the relay.",
        "the files of the relay do not have the text",
    )?;

    let fields = [("Consent-ID", GRANT), ("Reason", "the trip is called off")];
    let revoke = stage.begin(Who::Ann, SCOUT, "REVOKE");
    let revoke =
        with(revoke, "revocation", &fields).body("Please forget what I told you about my health.");
    stage.post_shown(Who::Ann, "revoke", &revoke)?;

    stage.say(
        "When the relay accepts a REVOKE, it has taken effect: waiting messages are cancelled, the texts are erased, also from \
         the search index, and Ann gets a list of what was erased.",
    );
    let confirmed = stage.fetch(Who::Ann, "the confirmation", |m| {
        read(&m.envelope).block("withdrawal").is_some()
    })?;
    let file = stage.write("confirmation.crosstalk", &confirmed.envelope)?;
    stage.page.envelope(&confirmed.envelope, &file);
    let document = read(&confirmed.envelope);
    let said = |key| document.meta("withdrawal", key).unwrap_or_default();
    let number = |key| said(key).parse::<u64>().unwrap_or(0);
    let (erased, cancelled) = (number("Erased"), number("Cancelled"));
    require(
        (erased, cancelled) == (3, 1),
        format!("3 erased and 1 cancelled are right, and it was {erased} and {cancelled}"),
    )?;
    let revoked = said("Consents");
    stage.check(
        revoked.contains(GRANT) && revoked.contains(TRANSFER),
        "Both consents are revoked: Ann's, and the one that Scout made of it.",
        format!("only these consents are revoked: {revoked}"),
    )?;
    require(
        stage.inbox(Who::Critic)?.iter().all(|m| m.id != waiting.id),
        "what was cancelled is still handed out",
    )?;
    stage.fetch(Who::Scout, "the news of it", |m| {
        let told = read(&m.envelope);
        let envelope = told.envelope();
        envelope.meaning() == Some(Intent::Error)
            && envelope.parent == Some(waiting.id.as_str())
            && told.meta("error", "Code") == Some(ErrorCode::Consent.as_str())
    })?;
    stage.checked("Critic does not get what was waiting, and Scout was told why: E-CONSENT.");
    let files = stage.until("the files of the relay are clean", || {
        let (traces, files) = find_traces(stage.data.folder())?;
        Ok((traces == 0).then_some(files))
    })?;
    stage.checked(format!(
        "Looked through {files} files of the relay, write-ahead log and all: not {TRACE_BYTES} bytes in a row of Ann's sentence \
         are left."
    ));

    stage.say("And it stays so. Scout tries once more, under the revoked consent.");
    let again = stage.begin(Who::Scout, CRITIC, "REQUEST");
    let again = transferred(again.body("Did you write to the guide?"), stage.end);
    let what = "a message under a consent that was revoked";
    stage.post_rejected(Who::Scout, "too-late", &again, what)?;
    stage.say(
        "A REVOKE can't reach the copies of others: the envelopes that the three keep for themselves stay with them.",
    );
    stage.fact("erased", erased);
    stage.fact("cancelled", cancelled);
    stage.fact("files_with_text_before", before);
    stage.fact("files_with_text_after", 0);
    stage.fact("refused_with", ErrorCode::Consent.as_str());
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

fn tell_audit(stage: &mut Stage) -> Result<(), Failure> {
    stage.say(
        "Everything that the relay accepted, rejected, delivered and erased is an entry of a log, and the log is a Merkle tree \
         whose root it signs. The operator exports it as a folder of text files; the key of the relay comes over another \
         channel.",
    );
    let (key, mut files) = export(stage)?;
    let (whole, changed) = (
        stage.folder().join("bundle"),
        stage.folder().join("tampered"),
    );
    BundleFolder::at(&whole).write(&files, &mut |_| {})?;
    stage.put("relay.key", &format!("{key}\n"))?;
    stage.put("held.note", &stage.held)?;
    stage.checked(format!(
        "bundle/ has {}: key, checkpoint, entries, details, and each message that still has a text.",
        count(files.len(), "file")
    ));
    stage.stop();
    stage.check(
        stage.log.key(ChainId::FIRST).is_err(),
        "The relay is stopped, and does not answer any more.",
        "the relay was stopped and still answers",
    )?;

    stage.say(
        "Now somebody who was not there checks: the signature, the tree, each message, and whether the log still begins with \
         what Critic kept of it.",
    );
    let held = [stage.held.clone()];
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
    stage.checked(format!("It holds: {size} entries ({}).", kinds.join(", ")));
    stage.checked(format!(
        "{} messages are the texts that were accepted. {} are erased, and the log still proves that they were there.",
        checked.messages, checked.erased
    ));
    stage.checked("It extends the checkpoint that Critic kept: nothing before was rewritten.");

    stage.say("In a copy, one byte of one message is changed.");
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
    stage.check(
        wrong.file == name,
        format!("It was found, at its place. {wrong}"),
        format!("the change is in {name}, and this was found: {wrong}"),
    )?;
    stage.fact("entries", size);
    stage.fact("messages", checked.messages);
    stage.fact("erased", checked.erased);
    stage.fact("extends_held_checkpoint", checked.extended == 1);
    stage.fact("verified_offline", true);
    stage.fact("tampering_found_in", wrong.file);
    Ok(())
}

/// The key of the log, and the files of the bundle.
fn export(stage: &mut Stage) -> Result<(NoteKey, Vec<(String, String)>), Failure> {
    stage.sign_log()?;
    let key = stage.log.key(ChainId::FIRST)?;
    let (note, signed) = stage.log.signed(ChainId::FIRST, &key)?;
    let asked = LogQuery {
        to: Some(signed.size),
        limit: usize::MAX,
        texts: Some(clock::exact()),
        ..LogQuery::default()
    };
    let entries = stage.log.entries(&asked, &mut |_| {})?;
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
