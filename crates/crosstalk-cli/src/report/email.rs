//! What `crosstalk email read` prints for programs.

use super::DIGEST;
use crosstalk_email::{MailKind, MailReading, SenderCheck};
use crosstalk_protocol::{Admitted, VerdictWord};
use schemars::JsonSchema;
use serde::Serialize;

/// What `crosstalk email read --json` prints: what a mail gateway would make of a mail.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EmailReport {
    #[schemars(extend("enum" = MailKind::ALL.map(MailKind::as_str)))]
    kind: &'static str,
    /// The new words, without quoted text, signatures and envelopes.
    text: String,
    /// The text that was left out.
    cut: String,
    envelopes: Vec<MailEnvelopeReport>,
    /// The sender that the mail names, if there is exactly one.
    from: Option<MailSenderReport>,
    message_id: Option<String>,
    in_reply_to: Option<String>,
    authentication: MailAuthenticationReport,
    /// The changes that the transport made to the text.
    damage: Vec<String>,
    /// Why the mail is of this kind.
    #[schemars(length(min = 1))]
    why: String,
}

/// An envelope of a mail.
#[derive(Serialize, JsonSchema)]
struct MailEnvelopeReport {
    /// The verified text, or the text as it was read where nothing verifies.
    text: String,
    #[schemars(extend("pattern" = DIGEST))]
    digest: Option<String>,
    #[schemars(extend("enum" = VerdictWord::ALL.map(VerdictWord::as_str)))]
    verdict: &'static str,
}

/// The sender of a mail.
#[derive(Serialize, JsonSchema)]
struct MailSenderReport {
    address: String,
    name: Option<String>,
}

/// What SPF, DKIM and DMARC say.
#[derive(Serialize, JsonSchema)]
struct MailAuthenticationReport {
    #[schemars(extend("enum" = SenderCheck::ALL.map(SenderCheck::as_str)))]
    spf: &'static str,
    #[schemars(extend("enum" = SenderCheck::ALL.map(SenderCheck::as_str)))]
    dkim: &'static str,
    #[schemars(extend("enum" = SenderCheck::ALL.map(SenderCheck::as_str)))]
    dmarc: &'static str,
}

impl EmailReport {
    pub(crate) fn new(reading: &MailReading) -> Self {
        let checks = &reading.authentication;
        Self {
            kind: reading.kind.as_str(),
            text: reading.text.clone(),
            cut: reading.cut.clone(),
            envelopes: reading.envelopes.iter().map(envelope).collect(),
            from: reading.from.as_ref().map(|from| MailSenderReport {
                address: from.address.clone(),
                name: from.name.clone(),
            }),
            message_id: reading.message_id.clone(),
            in_reply_to: reading.in_reply_to.clone(),
            authentication: MailAuthenticationReport {
                spf: checks.spf.as_str(),
                dkim: checks.dkim.as_str(),
                dmarc: checks.dmarc.as_str(),
            },
            damage: reading.damage.clone(),
            why: reading.why.clone(),
        }
    }
}

fn envelope(admitted: &Admitted) -> MailEnvelopeReport {
    let document = admitted.document();
    MailEnvelopeReport {
        text: document.source().to_owned(),
        digest: document.digest().ok().map(|digest| digest.to_string()),
        verdict: admitted.verdict().word().as_str(),
    }
}
