//! Tokens: the operator makes, lists and revokes them.

use crate::client::{Client, ClientError, RequestTarget};
use crate::endpoint::{endpoints, parameters};
use crate::schema::{self, MAX_ID_CHARS, require};
use crate::{BodyForm, Media, ParameterKind, RequestBody, SuccessResponse};
use http::header::ACCEPT;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How many addresses a token may have.
pub const MAX_TOKEN_ADDRESSES: usize = 64;

parameters! {
    /// The name of a token.
    TOKEN_NAME = segment "name", ParameterKind::text::<schema::Name>(MAX_ID_CHARS);
}

endpoints! {
    /// The tokens
    ///
    /// HTP-063.
    TOKENS: Tokens = Get "/crosstalk/tokens" for Admin in Tokens {
        response: SuccessResponse::ok("All tokens, without their secrets.", &[BodyForm::json::<Tokens>()]),
    }

    /// Make a token
    ///
    /// HTP-063.
    MAKE_TOKEN: MakeToken = Post "/crosstalk/tokens" for Admin in Tokens {
        request: Some(RequestBody {
            description: "The token that is wanted.",
            content: &[BodyForm::json::<NewToken>()],
        }),
        response: SuccessResponse {
            status: 201,
            ..SuccessResponse::ok("The token, with its secret.", &[BodyForm::json::<MadeToken>()])
        },
    }

    /// Revoke a token
    ///
    /// HTP-063.
    END_TOKEN: EndToken = Delete "/crosstalk/tokens/{}" for Admin in Tokens {
        parameters: &[&TOKEN_NAME],
        response: SuccessResponse {
            status: 204,
            ..SuccessResponse::ok("It is revoked.", &[])
        },
    }
}

/// The token that is wanted.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct NewToken {
    /// Its name.
    #[schemars(with = "schema::Name")]
    pub name: String,
    /// Its role.
    #[schemars(with = "schema::Role")]
    pub role: String,
    /// For which addresses. An agent and a person have at least one, a monitor has none.
    #[schemars(with = "Vec<schema::AddressPattern>", length(max = MAX_TOKEN_ADDRESSES))]
    pub addresses: Vec<String>,
    /// To whom its owner may carry messages of others by copy and paste; for people and administrators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::AddressPattern>", length(max = MAX_TOKEN_ADDRESSES))]
    pub courier: Vec<String>,
    /// When it expires; null for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Time>")]
    pub expires_at: Option<String>,
}

/// A token.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Token")]
pub struct TokenView {
    /// Its name.
    #[schemars(with = "schema::Name")]
    pub name: String,
    /// Its role.
    #[schemars(with = "schema::Role")]
    pub role: String,
    /// For which addresses. An agent and a person have at least one, a monitor has none.
    #[schemars(with = "Vec<schema::AddressPattern>", length(max = MAX_TOKEN_ADDRESSES))]
    pub addresses: Vec<String>,
    /// To whom its owner may carry messages of others by copy and paste.
    #[serde(default)]
    #[schemars(with = "Vec<schema::AddressPattern>", length(max = MAX_TOKEN_ADDRESSES))]
    pub courier: Vec<String>,
    /// When it was made.
    #[schemars(with = "schema::Time")]
    pub created_at: String,
    /// When it expires; null for never.
    #[schemars(with = "Option<schema::Time>")]
    pub expires_at: Option<String>,
    /// When it was revoked.
    #[schemars(with = "Option<schema::Time>")]
    pub revoked_at: Option<String>,
    /// When it was last used, to the minute; null for never. A relay of an older version does not say it.
    #[serde(default)]
    #[schemars(with = "Option<schema::Time>")]
    pub last_used_at: Option<String>,
    /// The secret, right after it was made and never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Secret")]
    pub token: Option<String>,
}

/// A token and its secret.
#[derive(Debug)]
pub enum MadeToken {}

impl JsonSchema for MadeToken {
    fn schema_name() -> Cow<'static, str> {
        "MadeToken".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let token = TokenView::json_schema(generator);
        require(token, "token", "A token and its secret.")
    }
}

/// Tokens, without their secrets.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Tokens {
    /// The tokens.
    pub tokens: Vec<TokenView>,
}

impl Client {
    /// All tokens, without their secrets.
    pub async fn tokens(&self) -> Result<Vec<TokenView>, ClientError> {
        Ok(self.get::<Tokens>(RequestTarget::of(&TOKENS)).await?.tokens)
    }

    /// Makes a token. Its secret is in the answer.
    pub async fn add_token(&self, token: &NewToken) -> Result<TokenView, ClientError> {
        self.put(RequestTarget::of(&MAKE_TOKEN), token).await
    }

    /// Revokes a token.
    pub async fn revoke_token(&self, name: &str) -> Result<(), ClientError> {
        let call = self.call(RequestTarget::of(&END_TOKEN).segment(name))?;
        self.run(call.header(ACCEPT, Media::Json.name())?)
            .await
            .map(drop)
    }
}
