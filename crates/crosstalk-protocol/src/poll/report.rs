//! The result of a poll as an envelope to who asked, and to where answers go (POL-041).

use super::collation::{Collation, CountedBallot, NotCounted};
use crate::store::is_same_party;
use crosstalk_envelope::id::{time_of, ulid_of};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::name::{SYSTEM, SYSTEM_USER};
use crosstalk_envelope::unicode::visible;
use crosstalk_envelope::{BuildError, Builder, CoreHeader, Intent};
use std::fmt::Write as _;

/// How much of all answers is quoted, in characters; each one has the same part.
const QUOTED: usize = 100_000;
/// How much of one answer is quoted at most.
const ANSWER: usize = 4_000;

impl Collation {
    /// The envelopes that tell the result: to who asked, and to the address that answers go to. Their bytes follow from
    /// the collation alone; `thread` is the conversation, where the poll names none.
    ///
    /// # Errors
    /// If one of them can't be written.
    pub fn to_envelopes(&self, thread: Option<&str>) -> Result<Vec<String>, BuildError> {
        let call = self.call();
        let mut to = vec![call.initiator.as_str()];
        to.extend(
            call.reply_to
                .as_deref()
                .filter(|r| !is_same_party(r, &call.initiator)),
        );
        to.into_iter().map(|to| self.envelope(to, thread)).collect()
    }

    fn envelope(&self, to: &str, thread: Option<&str>) -> Result<String, BuildError> {
        let call = self.call();
        let mut builder = Builder::new(SYSTEM, to)
            .user(SYSTEM_USER)
            .core_if(CoreHeader::Session, call.session.as_deref())
            .core_if(CoreHeader::Thread, call.thread.as_deref().or(thread))
            .parent(&call.id)
            .context(call.context.as_deref().unwrap_or("poll"))
            .intent(Intent::Respond.as_str())
            .meta("collation", "Poll", &call.id)
            .meta("collation", "From", line(&call.initiator))
            .meta("collation", "Digest", call.digest.to_string());
        let quorum = match self.quorum.required {
            Some(0) => format!("{}, none was asked for", self.quorum.counted),
            Some(needed) => format!("{} of {needed}", self.quorum.counted),
            None => format!("{} of an unknown number", self.quorum.counted),
        };
        let names = call.electorate.named();
        let names = (!names.is_empty()).then(|| line(&names.join(" | ")));
        let fields = [
            ("At", self.at.map(|t| t.to_string())),
            ("Outcome", self.outcome.as_deref().map(line)),
            ("Reason", self.reason.as_deref().map(line)),
            ("Quorum", Some(quorum)),
            ("Answers", Some(self.answers.to_string())),
            ("Names", names),
        ];
        for (key, value) in fields {
            if let Some(value) = value {
                builder = builder.meta("collation", key, value);
            }
        }
        let builder = builder.body(self.to_body()).visible();
        // The id follows from everything else, so that the same result is the same message.
        let text = builder.build()?;
        let digest = Digest::of(text.as_bytes()).0;
        let tail = digest
            .iter()
            .take(16)
            .fold(0_u128, |sum, b| (sum << 8) | u128::from(*b));
        let at = self.at.or_else(|| time_of(&call.id));
        let millis = at
            .and_then(|t| u64::try_from(t.as_millis()).ok())
            .unwrap_or(0);
        builder.message(ulid_of(millis, tail)).build()
    }

    /// The result as a text for people.
    pub fn to_body(&self) -> String {
        let mut out = String::new();
        let call = self.call();
        // Writing to a String can't fail.
        let _ = match (&self.outcome, &self.reason) {
            (Some(outcome), _) => writeln!(out, "Outcome: {}", line(outcome)),
            (None, Some(reason)) => writeln!(out, "No outcome: {}.", line(reason)),
            (None, None) => writeln!(out, "No outcome."),
        };
        let question = call
            .question
            .lines()
            .find(|l| !l.trim().is_empty())
            .unwrap_or_default();
        match call.is_private {
            true => out.push_str("The question is not repeated.\n"),
            false => {
                let _ = writeln!(out, "Question: {}", line(question));
            }
        }
        let by = match self.at {
            Some(at) => format!(", as of {at}"),
            None => String::new(),
        };
        let _ = writeln!(out, "Counted by {}{by}.", line(call.kind.as_str()));
        let quorum = match (self.quorum.required, self.quorum.reached) {
            (None, _) => "the quorum can't be read".to_owned(),
            (Some(0), _) => "no quorum was asked for".to_owned(),
            (Some(n), true) => format!("the quorum of {n} is reached"),
            (Some(n), false) => format!("the quorum of {n} is not reached"),
        };
        let _ = writeln!(
            out,
            "{} of {} have a ballot that counts; {quorum}.",
            self.quorum.counted,
            call.invited.len()
        );
        if !self.tally.0.is_empty() {
            out.push_str("\nTally:\n");
            for (option, number) in &self.tally.0 {
                let _ = writeln!(out, "- {}: {number}", line(option));
            }
        }
        self.write_pairs(&mut out);
        self.write_agreement(&mut out);
        if !self.missing.is_empty() {
            out.push_str("\nNo answer (E-TIMEOUT):\n");
            for address in &self.missing {
                let _ = writeln!(out, "- {}", line(address));
            }
        }
        let all = self.counted.len() + self.not_counted.len();
        let part = (QUOTED / all.max(1)).min(ANSWER);
        if !self.counted.is_empty() {
            out.push_str("\nAnswers that count:\n");
            for ballot in &self.counted {
                write_counted(&mut out, ballot, part);
            }
        }
        if !self.not_counted.is_empty() {
            out.push_str("\nNot counted:\n");
            for other in &self.not_counted {
                write_not_counted(&mut out, other, part);
            }
        }
        out
    }

    fn write_pairs(&self, out: &mut String) {
        let Some(pairs) = &self.pairwise else {
            return;
        };
        out.push_str("\nPreferred to another option, in ballots:\n");
        for (option, _) in &self.tally.0 {
            let row = pairs
                .get(option)
                .map(|t| t.0.as_slice())
                .unwrap_or_default();
            let row = row.iter().filter(|(other, _)| other != option);
            let row: Vec<String> = row
                .map(|(other, n)| format!("{} {n}", line(other)))
                .collect();
            let _ = writeln!(out, "- {} to {}", line(option), row.join(", "));
        }
    }

    fn write_agreement(&self, out: &mut String) {
        match self.agreement.as_slice() {
            [] => return,
            [_] if self.counted.len() > 1 => out.push_str("\nAgreement: all say the same.\n"),
            [_] => return,
            _ => out.push_str("\nDisagreement:\n"),
        }
        for group in &self.agreement {
            let choice = group
                .choice
                .as_deref()
                .map_or_else(|| "(abstains)".into(), first_line);
            let voters: Vec<String> = group.voters.iter().map(|v| line(v)).collect();
            let _ = writeln!(out, "- {choice}: {}", voters.join(", "));
        }
    }
}

fn write_counted(out: &mut String, ballot: &CountedBallot, part: usize) {
    let choice = ballot
        .choice
        .as_deref()
        .map_or_else(|| "(abstains)".into(), first_line);
    let mut notes = Vec::new();
    match &ballot.corrected {
        Some(corrected) => {
            let before = corrected.read_as.as_deref().unwrap_or("nothing");
            notes.push(format!(
                "read so by {}, else as {}",
                line(&corrected.by),
                line(before)
            ));
        }
        None if ballot.read_from != "vote" => notes.push("read from the first line".to_owned()),
        None => {}
    }
    if let Some(sender) = &ballot.sender {
        notes.push(format!("sent as {}", line(sender)));
    }
    if let Some(confidence) = &ballot.confidence {
        notes.push(format!("confidence {}", line(confidence)));
    }
    match (ballot.signature, &ballot.pkid) {
        ("holds", Some(pkid)) => notes.push(format!("signed by {}", line(pkid))),
        ("unchecked", Some(pkid)) => notes.push(format!("signature of {} not checked", line(pkid))),
        _ => {}
    }
    if ballot.undated {
        notes.push("nobody can say when it was written".to_owned());
    }
    let notes = match notes.is_empty() {
        true => String::new(),
        false => format!(" ({})", notes.join("; ")),
    };
    let _ = writeln!(out, "- {}: {choice}{notes}", line(&ballot.from));
    quote(out, &ballot.answer, part);
}

fn write_not_counted(out: &mut String, other: &NotCounted, part: usize) {
    let (from, why) = (line(&other.from), other.why.as_str());
    let _ = writeln!(out, "- {from}: {why}, {}", line(&other.detail));
    quote(out, &other.answer, part);
}

/// What somebody said, as a quotation.
fn quote(out: &mut String, answer: &str, most: usize) {
    let mut left = most;
    for text in answer.lines() {
        let part: String = text.chars().take(left).collect();
        left -= part.chars().count();
        let _ = writeln!(out, "  > {part}");
        if part.len() < text.len() || left == 0 {
            out.push_str("  > …\n");
            return;
        }
    }
}

/// A text in one line, with nothing hidden in it.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    visible(&words.join(" ")).into_owned()
}

fn first_line(text: &str) -> String {
    let first = text
        .lines()
        .find(|l| !l.trim().is_empty())
        .unwrap_or_default();
    let shown: String = line(first).chars().take(200).collect();
    match text.trim().lines().count() > 1 {
        true => format!("{shown} …"),
        false => shown,
    }
}
