//! `crosstalk audit trace`: the way of a message, from its own text.

use super::key;
use crate::console::{BOLD, Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Files, Input};
use crate::schema::AUDIT_TRACE;
use crate::service::dns::{Look, Lookup};
use crate::service::home::Rooms;
use crate::{clock, json};
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, PublicKey, Reading};
use crosstalk_protocol::Word;
use crosstalk_protocol::dns::DnsAnswer;
use crosstalk_protocol::relay::{Signed, Step, hops_of, trace};
use serde_json::{Value, json};

/// Show the way of a message, and check every hop of it
///
/// Every relay adds a hop: when it had the message, from whom, and where it is in its log. Each hop covers the one before
/// with its digest. A signature is checked with the keys that are pinned here, or with --dns those of the domain.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk audit trace message.aict\n  crosstalk audit trace --dns message.aict\n  crosstalk audit trace --json message.aict | jq -r '.hops[].by'\n\nExit codes: 0 every hop follows and is signed by a key that is known, 20 a hop has a key that nobody vouches for or is not\nsigned, 24 a hop does not hold, 12 the text can't be read."
)]
pub(super) struct Trace {
    #[command(flatten)]
    files: Files,
    /// Check all signatures with this key and no other: name+hash+key, a file with it, a PEM file or a record
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    look: Look,
    /// Print JSON of the form crosstalk.audit-trace/1, one object a line
    #[arg(long)]
    json: bool,
}

impl Trace {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let given = self.key.as_deref().map(key::public).transpose()?;
        let rooms = Rooms::open()?;
        let mut trust = rooms.trust()?;
        let mut lookup = Lookup::new(&self.look, &rooms)?;
        self.files.each(console, |console, input: &Input| {
            let (text, scan) = input.scan(Reading::Strict);
            let _ = text;
            let mut exit = Exit::SUCCESS;
            for document in &scan.documents {
                let mut asked: Vec<(String, PublicKey)> = Vec::new();
                for hop in hops_of(document).into_iter().flatten() {
                    let by = hop.received_by;
                    if let Some(DnsAnswer::Keys { keys, .. }) =
                        lookup.ask(console, &by, &mut trust)?
                    {
                        asked.extend(keys.into_iter().map(|k| (by.clone(), k)));
                    }
                }
                let keys = |name: &str| match &given {
                    Some(key) => vec![*key],
                    None => {
                        let answered = asked.iter().filter(|(n, _)| n == name);
                        let answered = answered.map(|(_, k)| *k);
                        key::of(&trust, name).into_iter().chain(answered).collect()
                    }
                };
                let steps = trace(document, &keys);
                exit = exit.worst(self.tell(console, input, document, &steps)?);
            }
            if scan.documents.is_empty() {
                let name = input.shown_name();
                return Err(Failure::Refused(
                    crosstalk_envelope::ErrorCode::Format,
                    format!("{name}: there is no envelope in it"),
                ));
            }
            Ok(exit)
        })
    }

    fn tell(
        &self,
        console: &mut Console,
        input: &Input,
        document: &Document<'_>,
        steps: &[Step],
    ) -> Result<Exit, Failure> {
        let exit = steps.iter().map(judged).fold(Exit::SUCCESS, Exit::worst);
        if self.json {
            let file = self.files.several().then_some(input.name.as_str());
            console.data(json::line(&report(document, steps, file))?)?;
            return Ok(exit);
        }
        let envelope = document.envelope();
        let id = envelope.message.unwrap_or("without an id");
        console.show(&format!(
            "{}  {} → {}\n",
            styled(BOLD, &escape(id)),
            escape(document.sender()),
            escape(envelope.receiver.as_str()),
        ))?;
        if steps.is_empty() {
            console.show("  no relay has added a hop: it came straight from its sender\n")?;
        }
        for step in steps {
            console.show(&shown(step))?;
        }
        Ok(exit)
    }
}

fn judged(step: &Step) -> Exit {
    match (&step.signed, step.faults.is_empty()) {
        (_, false) => Word::NotVerified.into(),
        (Signed::Verified(_), true) => Exit::SUCCESS,
        (_, true) => Word::FirstContact.into(),
    }
}

fn shown(step: &Step) -> String {
    let mark = match judged(step) {
        Exit::SUCCESS => styled(GREEN, "✓"),
        exit if exit == Exit::from(Word::FirstContact) => styled(YELLOW, "?"),
        _ => styled(RED, "✗"),
    };
    let (mut by, mut at, mut chain) = (String::from("?"), String::from("?"), String::new());
    if let Some(hop) = &step.hop {
        by = escape(&hop.received_by).into_owned();
        at = hop.received_at.to_string();
        if let Some(place) = &hop.chain {
            chain = format!("  log {}", escape(place));
        }
    }
    let gap = step.since.map(passed).unwrap_or_default();
    let signed = match &step.signed {
        Signed::Verified(_) => "signed, the key is known",
        Signed::Unknown(_) => "signed by a key that is not known here",
        Signed::Wrong(_) => "the signature is not its own",
        Signed::No => "not signed",
    };
    let mut out = format!(
        "  {mark} {}  {at}{}  {}{}\n",
        step.place,
        styled(DIM, &gap),
        styled(BOLD, &by),
        styled(DIM, &format!("  {signed}{chain}"))
    );
    for fault in &step.faults {
        out.push_str(&format!("      {}\n", styled(RED, fault.sentence())));
    }
    out
}

/// The time between two hops.
fn passed(millis: i64) -> String {
    let sign = if millis < 0 { '-' } else { '+' };
    match millis.unsigned_abs() {
        ms @ 0..10_000 => format!("  {sign}{ms} ms"),
        ms @ 10_000..600_000 => format!("  {sign}{} s", ms / 1000),
        ms @ 600_000..36_000_000 => format!("  {sign}{} min", ms / 60_000),
        ms => format!("  {sign}{} h", ms / 3_600_000),
    }
}

fn report(document: &Document<'_>, steps: &[Step], file: Option<&str>) -> Value {
    let hop = |step: &Step| {
        let hop = step.hop.as_ref();
        json!({
            "place": step.place,
            "by": hop.map(|h| &h.received_by),
            "at": hop.map(|h| h.received_at.to_string()),
            "from": hop.and_then(|h| h.previous_hop.as_ref()),
            "chain": hop.and_then(|h| h.chain.as_ref()),
            "since_ms": step.since,
            "signature": step.signed.as_str(),
            "faults": step.faults.iter().map(|f| f.as_str()).collect::<Vec<_>>(),
        })
    };
    let envelope = document.envelope();
    let mut report = json!({
        "schema": AUDIT_TRACE,
        "message": envelope.message,
        "sender": document.sender(),
        "receiver": envelope.receiver.as_str(),
        "digest": document.digest().ok().map(|d| d.to_string()),
        "checked_at": clock::now().to_string(),
        "hops": steps.iter().map(hop).collect::<Vec<Value>>(),
    });
    if let Some(file) = file {
        json::tag(&mut report, file);
    }
    report
}
