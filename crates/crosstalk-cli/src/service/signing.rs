//! Signs messages and checks the result.

use crate::failure::Failure;
use crate::service::deliver::is_revoke_only;
use crosstalk_binding::require_verified;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Builder, Document, PrivateKey, Reading};

/// A new key.
pub(crate) fn new_key(algorithm: Algorithm) -> Result<PrivateKey, Failure> {
    PrivateKey::generate(algorithm)
        .map_err(|e| Failure::failed(format!("the system gives no random numbers: {e}")))
}

/// Signs a message and checks the result.
pub(crate) fn sign(signer: &Signer<'_>, builder: &Builder) -> Result<String, Failure> {
    let text = match builder.build() {
        Ok(text) => text,
        // A REVOKE that is not signed yet.
        Err(fault) if is_revoke_only(&fault) => fault.text,
        Err(fault) => {
            return Err(Failure::usage(format!(
                "the message can't be written: {fault}"
            )));
        }
    };
    let signed = signer.sign(&Document::parse(&text, Reading::Strict));
    let signed = signed.map_err(|d| Failure::of_rule(d.rule, &d.message))?;
    require_verified(&signed, signer)?;
    Ok(signed)
}
