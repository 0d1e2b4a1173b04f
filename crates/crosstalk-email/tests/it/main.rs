//! Mails from end to end: the corpus of `conformance/email`, hostile mails, and a signed envelope on its way.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test may fail"
)]

mod corpus;
mod decision;
mod hostile;
mod ids;
mod signed;
mod text_message;
mod written;

use crosstalk_email::{MailReading, read_mail};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::{Trust, VerifyContext};

/// The time of the tests.
const NOW: Timestamp = Timestamp::from_millis(1_760_000_000_000);

fn read(mail: &[u8]) -> MailReading {
    read_mail(mail, &Trust::default(), &VerifyContext::at(NOW)).unwrap()
}
