//! An answer to a poll: a ballot, prose, a correction by a person, or the word that somebody does not vote
//! (POL-005, POL-010 to POL-013).

use super::call::PollCall;
use super::choice::BallotChoice;
use super::electorate::Voter;
use super::proof::{Proofs, pkid_of};
use super::{Paper, is_result, prose};
use crate::consent::{Claim, keeps_inside};
use crate::store::is_placeholder;
use crate::verdict::VerdictWord;
use crosstalk_envelope::id::time_of;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, Intent, PublicKey, Timestamp};

/// An answer, read.
#[derive(Clone, Debug)]
pub(super) struct Slip<'p> {
    pub(super) document: &'p Document<'p>,
    pub(super) from: String,
    pub(super) message: Option<String>,
    pub(super) digest: Digest,
    /// When it came, as a verified hop says.
    pub(super) hop: Option<Timestamp>,
    /// When it was written, as its id says.
    pub(super) written: Option<Timestamp>,
    pub(super) voter: Voter,
    pub(super) says: Says,
    /// What the envelope itself proves.
    pub(super) word: VerdictWord,
    /// The result of the check that the caller supplied.
    pub(super) verdict: Option<VerdictWord>,
    /// The key id that it names.
    pub(super) pkid: Option<String>,
    /// The key that was handed over with it, or with another message of its sender.
    key: Option<PublicKey>,
    pub(super) confidence: Option<String>,
    /// What it says, or that this is not repeated.
    pub(super) body: String,
    /// Whether its words are not repeated.
    pub(super) is_private: bool,
    /// The message that it names as its parent, where that is not the poll.
    pub(super) other_parent: Option<String>,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// A choice, in `meta: vote`.
    Vote(BallotChoice),
    /// A choice, read from prose.
    Prose(BallotChoice),
    /// Nothing that can be read, and why.
    Unreadable(String),
    /// How the answer of somebody else is to be read: which one, whose, and what it says.
    Correction {
        message: String,
        of: Option<String>,
        choice: Result<BallotChoice, String>,
    },
    /// That there will be no ballot.
    Declines,
}

/// What stands for words that are not repeated.
const UNREPEATED: &str =
    "(Not repeated: it has personal data in it, or a consent that can be withdrawn or that ends.)";

/// Whether the words of a message are not repeated: it has personal data in it, by what it says, or is under a
/// consent, expires, or must not reach third parties. An unreadable value counts as private.
pub(super) fn is_private(document: &Document<'_>) -> bool {
    let claim = Claim::of(document).is_some_and(|claim| {
        claim.needs().next().is_some()
            || claim.kind.is_some()
            || claim.names("").next().is_some()
            || claim.expires.is_some()
            || claim.unclear_end.is_some()
    });
    claim || keeps_inside(document)
}

impl Says {
    /// The same without what was written freely.
    fn without_words(self) -> Self {
        let choice = |choice| match choice {
            BallotChoice::Text(_) => BallotChoice::Text(UNREPEATED.to_owned()),
            other => other,
        };
        match self {
            Self::Vote(said) => Self::Vote(choice(said)),
            Self::Prose(said) => Self::Prose(choice(said)),
            Self::Unreadable(_) => Self::Unreadable("nobody can read a choice from it".to_owned()),
            Self::Correction {
                message,
                of,
                choice: said,
            } => Self::Correction {
                message,
                of,
                choice: said.map(choice).map_err(|_| String::new()),
            },
            Self::Declines => Self::Declines,
        }
    }
}

/// Whether a message with this intent may answer a poll: it votes or declines.
pub const fn may_be_ballot(meaning: Intent) -> bool {
    matches!(meaning, Intent::Respond | Intent::Nack)
}

impl<'p> Slip<'p> {
    /// Reads an envelope as an answer to a poll; nothing if it is none.
    pub(super) fn read(paper: &Paper<'p>, call: &PollCall, proofs: &Proofs) -> Option<Self> {
        let document = paper.document;
        let envelope = document.envelope();
        let meaning = envelope.meaning()?;
        if !may_be_ballot(meaning) || is_result(document) {
            return None;
        }
        let id = |id: Option<&str>| {
            id.filter(|id| !paper.is_pasted || !is_placeholder(id))
                .map(str::to_owned)
        };
        let parent = id(envelope.parent);
        let voter = call.electorate.voter(document.sender());
        let is_near = match (envelope.thread, &call.thread) {
            (Some(one), Some(other)) => one == other,
            (None, _) => {
                let session = envelope.session.map(|s| s.text);
                session.is_some() && session == call.session.as_deref()
            }
            (Some(_), None) => false,
        };
        let is_invited = voter != Voter::Uninvited;
        let other_parent = match parent {
            Some(parent) if parent == call.id => None,
            None if is_near => None,
            Some(parent) if is_near && is_invited && meaning == Intent::Respond => Some(parent),
            _ => return None,
        };
        let (word, pkid) = (proofs.word(document, None), pkid_of(document));
        // Models copy the id of the question.
        let message = id(envelope.message).filter(|m| *m != call.id);
        let body = document.body_text();
        let is_private = is_private(document);
        let says = match meaning {
            Intent::Nack => Says::Declines,
            _ if is_private => says(document, &body, call).without_words(),
            _ => says(document, &body, call),
        };
        Some(Self {
            document,
            from: document.sender().to_owned(),
            written: message
                .as_deref()
                .and_then(time_of)
                .filter(|t| t.as_millis() > 0),
            message,
            digest: digest(document),
            hop: paper.hop,
            voter,
            says,
            word,
            verdict: paper.verdict,
            pkid,
            key: carried_key(document),
            confidence: envelope
                .vote()
                .and_then(|v| v.confidence)
                .filter(|_| !is_private)
                .map(str::to_owned),
            body: match is_private {
                true => UNREPEATED.to_owned(),
                false => body,
            },
            is_private,
            other_parent,
        })
    }

    /// When it came: as a verified hop says, else as its id says.
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.hop.or(self.written)
    }

    /// What puts the answers of one voter in order.
    pub(super) fn order(&self) -> (Option<Timestamp>, Option<&str>, [u8; 32]) {
        (self.time(), self.message.as_deref(), self.digest.0)
    }

    /// The signer, where the signature holds: the key id and the key, since anyone can use any id.
    pub(super) fn signer(&self) -> Option<String> {
        let pkid = self.pkid.as_deref().filter(|_| holds(self.word))?;
        Some(signer(pkid, self.key.as_ref()))
    }

    /// Whether it must not be acted on.
    pub(super) fn is_bad(&self) -> bool {
        is_bad(self.word) || self.verdict.is_some_and(is_bad)
    }

    /// Tries the signature with a key that another envelope brought.
    pub(super) fn check(&mut self, key: &PublicKey, proofs: &Proofs) {
        self.word = proofs.word(self.document, Some(key));
        self.key = Some(*key);
    }

    /// Whether it names a message: by its id, or by the digest of its canonical form.
    pub(super) fn is_named(&self, reference: &str) -> bool {
        self.message.as_deref() == Some(reference) || Digest::parse(reference) == Some(self.digest)
    }
}

fn says(document: &Document<'_>, body: &str, call: &PollCall) -> Says {
    let block = document.block("vote");
    let key = |name: &str| {
        block
            .and_then(|b| b.get(name))
            .map(str::trim)
            .filter(|v| !v.is_empty())
    };
    let vote = document.envelope().vote();
    let abstains = vote.as_ref().is_some_and(|v| v.abstains);
    let choice = match (abstains, key("Choice")) {
        (true, None) => Some(Ok(BallotChoice::Abstain)),
        (true, Some(_)) => Some(Err("it abstains and chooses".to_owned())),
        (false, Some(text)) => Some(BallotChoice::parse(text, call)),
        (false, None) => None,
    };
    if let Some(message) = key("Corrects") {
        return Says::Correction {
            message: message.to_owned(),
            of: key("For").map(str::to_owned),
            choice: choice.unwrap_or_else(|| Err("it has no Choice".into())),
        };
    }
    if key("For").is_some() {
        return Says::Unreadable(
            "it votes for somebody else, and says not what it corrects".into(),
        );
    }
    match choice {
        Some(Ok(choice)) => Says::Vote(choice),
        Some(Err(why)) => Says::Unreadable(why),
        None => match prose::read(body, call) {
            Ok(choice) => Says::Prose(choice),
            Err(why) => Says::Unreadable(why),
        },
    }
}

/// A key with its id.
pub(super) fn signer(pkid: &str, key: Option<&PublicKey>) -> String {
    // An id that is the key itself comes without one.
    format!("{pkid} {}", key.map(PublicKey::record).unwrap_or_default())
}

/// The key that an envelope carries.
pub(super) fn carried_key(document: &Document<'_>) -> Option<PublicKey> {
    let record = document.envelope().key()?.public_key?;
    PublicKey::parse_record(record).ok()
}

/// Whether a signature holds, whoever vouches for the key.
pub(super) fn holds(word: VerdictWord) -> bool {
    word.is_signed()
}

fn is_bad(word: VerdictWord) -> bool {
    matches!(
        word,
        VerdictWord::Damaged | VerdictWord::NotVerified | VerdictWord::Revoked
    )
}

/// The digest of the canonical form; of the text, where it has none.
pub(super) fn digest(document: &Document<'_>) -> Digest {
    document
        .digest()
        .unwrap_or_else(|_| Digest::of(document.source().as_bytes()))
}
