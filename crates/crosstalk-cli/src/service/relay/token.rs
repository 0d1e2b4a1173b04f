//! Tokens of a relay: their secrets, and the hint how to make one.

use crate::clock;
use crate::failure::Failure;
use crosstalk_envelope::base64;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::{Role, TokenRecord};

/// The command that lets one agent in, for its own address.
pub(crate) const NARROW_TOKEN: &str = "token create NAME --role agent --for ADDRESS";

/// Who creates and revokes tokens on the data folder, as the log names them.
pub(crate) const OPERATOR: &str = "operator";

/// A new token that never expires, and its secret. The token holds a digest of the secret only.
pub(crate) fn new_token(
    name: String,
    role: Role,
    addresses: Vec<String>,
) -> Result<(TokenRecord, String), Failure> {
    let secret = new_secret()?;
    let token = TokenRecord {
        name,
        hash: Digest::of(secret.as_bytes()),
        role,
        addresses,
        courier: Vec::new(),
        created_at: clock::now(),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    };
    Ok((token, secret))
}

/// A new secret: 256 random bits.
fn new_secret() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|e| Failure::Failed(format!("the system gives no random numbers: {e}")))?;
    let text = base64::encode(&bytes);
    let text = text
        .trim_end_matches('=')
        .replace('+', "-")
        .replace('/', "_");
    Ok(format!("xt_{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_have_their_form_and_differ() {
        let (one, other) = (new_secret().unwrap(), new_secret().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 46);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        assert!(one.starts_with("xt_") && one.chars().all(is_plain), "{one}");
    }
}
