//! A relay under pressure: a full disk, thousands of slow clients, the same message again and again, a flood.

#[cfg(target_os = "linux")]
mod disk;
mod flood;
mod replay;
#[cfg(target_os = "linux")]
mod slow;

use crate::durability::{listed, relay, skip};
use crosstalk_testing::http::Answer;

/// An answer that tells senders to come again: the code, and after how many seconds.
fn comes_again(answer: &Answer) -> (String, u64) {
    let text = answer.text();
    assert!(
        text.starts_with("[[") && text.ends_with("[[END]]\n"),
        "{text}"
    );
    let document = crosstalk_envelope::Document::parse(&text, crosstalk_envelope::Reading::Strict);
    assert!(
        document.is_accepted(),
        "{text}\n{:?}",
        document.diagnostics()
    );
    assert_eq!(
        document.header(crosstalk_envelope::CoreHeader::Intent),
        Some("ERROR")
    );
    let wait = answer.header("retry-after").map(|w| w.parse().unwrap());
    let code = document.meta("error", "Code").map(str::to_owned);
    (
        code.unwrap_or_else(|| panic!("{text}")),
        wait.unwrap_or_else(|| panic!("{answer:?}")),
    )
}
