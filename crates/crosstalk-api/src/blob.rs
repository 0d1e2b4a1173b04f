//! Attachments, which their digests name.

use crate::client::{Client, ClientError, RequestTarget, unreadable};
use crate::endpoint::{endpoints, parameters};
use crate::schema::{self, MAX_ID_CHARS};
use crate::{BodyForm, Media, ParameterKind, RequestBody, SuccessResponse};
use bytes::Bytes;
use crosstalk_envelope::meta::Digest;
use http::header::{ACCEPT, CONTENT_TYPE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

parameters! {
    /// The digest of an attachment.
    DIGEST = segment "digest", ParameterKind::text::<schema::Digest>(MAX_ID_CHARS);
}

endpoints! {
    /// Fetch an attachment
    ///
    /// HTP-051.
    GET_BLOB: GetBlob = Get "/crosstalk/blobs/{}" for Known in Blobs {
        parameters: &[&DIGEST],
        response: SuccessResponse::ok("Its bytes.", &[BodyForm::of::<schema::Bytes>(Media::Bytes)]),
    }

    /// Whether an attachment is there
    ///
    /// HTP-051. No answer has a body.
    HEAD_BLOB: HeadBlob = Head "/crosstalk/blobs/{}" for Known in Blobs {
        parameters: &[&DIGEST],
        response: SuccessResponse::ok("It is there.", &[]),
    }

    /// Bring an attachment
    ///
    /// HTP-050.
    PUT_BLOB: PutBlob = Put "/crosstalk/blobs/{}" for Known in Blobs {
        parameters: &[&DIGEST],
        request: Some(RequestBody {
            description: "Its bytes.",
            content: &[BodyForm::of::<schema::Bytes>(Media::Bytes)],
        }),
        response: SuccessResponse {
            status: 201,
            ..SuccessResponse::ok(
                "The relay has it, whether it had it before or not.",
                &[BodyForm::json::<Blob>()],
            )
        },
    }
}

/// An attachment that the relay has.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Blob {
    /// Its digest.
    #[schemars(with = "schema::Digest")]
    pub digest: String,
    /// How many bytes it has.
    pub size: u64,
}

impl Client {
    /// Hands an attachment in. Its digest.
    pub async fn put_blob(&self, bytes: Bytes) -> Result<Digest, ClientError> {
        let digest = Digest::of(&bytes);
        let target = RequestTarget::of(&PUT_BLOB).segment(&digest.to_string());
        let mut call = self.call(target)?;
        call = call.header(CONTENT_TYPE, Media::Bytes.content_type())?;
        // A slow line carries a large attachment, too.
        call.within += Duration::from_secs(bytes.len() as u64 / (64 << 10));
        call.body = bytes;
        self.run(call.header(ACCEPT, Media::Json.name())?).await?;
        Ok(digest)
    }

    /// Whether an attachment is there.
    pub async fn has_blob(&self, digest: Digest) -> Result<bool, ClientError> {
        let target = RequestTarget::of(&HEAD_BLOB).segment(&digest.to_string());
        match self.run(self.call(target)?).await {
            Ok(_) => Ok(true),
            Err(ClientError::Rejected(refused)) if refused.status == 404 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// An attachment; what comes is checked against its digest.
    pub async fn get_blob(&self, digest: Digest, most: u64) -> Result<Bytes, ClientError> {
        let target = RequestTarget::of(&GET_BLOB).segment(&digest.to_string());
        let mut call = self.call(target)?;
        call.most = most;
        call.within += Duration::from_secs(most / (64 << 10));
        let answer = self.run(call).await?;
        if Digest::of(&answer.body) != digest {
            return Err(unreadable(&answer, "it is not what the digest says"));
        }
        Ok(answer.body)
    }
}
