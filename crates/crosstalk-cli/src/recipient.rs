//! Whom a message is for, as it is typed: an address, a name of the settings, or a name for a person to resolve.

use crate::config::Config;
use crosstalk_envelope::Address;
use crosstalk_protocol::resolve;

/// The address to write. A name that stands for nothing stays one, in capitals as names are usually written, if it was
/// typed in small letters.
pub(crate) fn resolve_typed(config: &Config, typed: &str) -> String {
    let resolution = resolve(typed, config.names(), None);
    // What the table says is written as it says.
    match resolution.result == typed {
        true => capitals(typed),
        false => resolution.result,
    }
}

/// A simple name in capitals, if it has no capital; everything else as it is.
fn capitals(typed: &str) -> String {
    let is_name = Address::split(typed).scheme().is_none();
    match is_name && !typed.chars().any(char::is_uppercase) {
        true => typed.to_uppercase(),
        false => typed.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_in_small_letters_become_capitals() {
        for (typed, written) in [
            ("chatgpt", "CHATGPT"),
            ("brother ai", "BROTHER AI"),
            ("McCloud", "McCloud"),
            ("claude://session/abc", "claude://session/abc"),
            ("email:a@b.example", "email:a@b.example"),
        ] {
            assert_eq!(capitals(typed), written);
        }
    }
}
