//! The chapters. Each does something, looks at what came out, and ends the story if that is not what it should be.

mod audit;
mod escalation;
mod handoff;
mod people;
mod poll;
mod question;
mod revocation;

use super::page::Page;
use super::world::{Posted, World};
use crate::failure::Failure;
use crate::view;
use crosstalk_envelope::ErrorCode;
use crosstalk_relay::client::ClientError;

/// A chapter.
pub(super) struct Chapter {
    pub(super) title: &'static str,
    pub(super) tell: fn(&mut World, &mut Page) -> Result<(), Failure>,
}

/// All of them, in their order.
pub(super) const CHAPTERS: [Chapter; 7] = [
    Chapter {
        title: "Three participants",
        tell: people::tell,
    },
    Chapter {
        title: "A question and its answer",
        tell: question::tell,
    },
    Chapter {
        title: "A poll",
        tell: poll::tell,
    },
    Chapter {
        title: "A person is asked",
        tell: escalation::tell,
    },
    Chapter {
        title: "A hand-off with consent",
        tell: handoff::tell,
    },
    Chapter {
        title: "The consent is withdrawn",
        tell: revocation::tell,
    },
    Chapter {
        title: "The audit, without the relay",
        tell: audit::tell,
    },
];

/// An envelope, and what the relay said about it.
fn taken(page: &mut Page, posted: &Posted) {
    page.envelope(&posted.text, &posted.file);
    page.checked(receipt(posted));
}

/// What the relay said about a message that it took.
fn receipt(posted: &Posted) -> String {
    let entry = match posted.receipt.index {
        Some(index) => format!("entry {index} of its log"),
        None => "no entry in its log".to_owned(),
    };
    let digest: String = posted.receipt.digest.chars().take(19).collect();
    format!("The relay took it: {entry}, {digest}…")
}

/// What the relay says against a message that it has to refuse for want of consent, in a line.
fn refusal(answer: Result<Posted, ClientError>, what: &str) -> Result<String, Failure> {
    match answer {
        Err(ClientError::Refused(refused)) if refused.code == Some(ErrorCode::Consent) => {
            Ok(view::first_line(&refused.detail))
        }
        Err(other) => Err(Failure::Failed(format!(
            "{what} has to be refused for want of consent, and it was for another reason: {other}"
        ))),
        Ok(_) => Err(Failure::Failed(format!(
            "the relay took {what}, which it has to refuse"
        ))),
    }
}
