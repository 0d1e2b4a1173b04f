//! Pairing: a browser extension gets a token for a code, and revokes it.

use crate::endpoint::endpoints;
use crate::token::MadeToken;
use crate::{BodyForm, RequestBody, SuccessResponse, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    /// Get a token for a pairing code
    ///
    /// HTP-069. A code is valid for five minutes and works once; the operator makes one with `crosstalk token pair`.
    PAIR: Pair = Post "/crosstalk/pair" for Named in Tokens {
        request: Some(RequestBody {
            description: "The code.",
            content: &[BodyForm::json::<PairingRequest>()],
        }),
        response: SuccessResponse {
            status: 201,
            ..SuccessResponse::ok("The token, with its secret.", &[BodyForm::json::<MadeToken>()])
        },
    }

    /// Revoke the token of this request
    ///
    /// HTP-069.
    UNPAIR: Unpair = Delete "/crosstalk/pair" for Known in Tokens {
        response: SuccessResponse {
            status: 204,
            ..SuccessResponse::ok("It is revoked.", &[])
        },
    }
}

/// The longest code, with the spaces and hyphens that a person may type.
pub const MAX_CODE_CHARS: usize = 32;

/// A pairing code.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct PairingRequest {
    /// The code that `crosstalk token pair` printed. Case, spaces and hyphens do not count.
    #[schemars(with = "schema::PairingCode")]
    pub code: String,
}
