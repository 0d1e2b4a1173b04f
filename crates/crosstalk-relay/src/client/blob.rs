//! Attachments at a relay.

use super::{Client, ClientError, JSON, Path, unreadable};
use bytes::Bytes;
use crosstalk_envelope::meta::Digest;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE};
use std::time::Duration;

impl Client {
    /// Hands an attachment in. Its digest.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn put_blob(&self, bytes: Bytes) -> Result<Digest, ClientError> {
        let digest = Digest::of(&bytes);
        let path = Path::new("crosstalk/blobs").part(&digest.to_string());
        let mut call = self.call(Method::PUT, &path.text)?;
        call = call.header(CONTENT_TYPE, "application/octet-stream")?;
        // A slow line carries a large attachment, too.
        call.within += Duration::from_secs(bytes.len() as u64 / (64 << 10));
        call.body = bytes;
        self.run(call.header(ACCEPT, JSON)?).await?;
        Ok(digest)
    }

    /// Whether an attachment is there.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn has_blob(&self, digest: Digest) -> Result<bool, ClientError> {
        let path = Path::new("crosstalk/blobs").part(&digest.to_string());
        match self.run(self.call(Method::HEAD, &path.text)?).await {
            Ok(_) => Ok(true),
            Err(ClientError::Refused(refused)) if refused.status == 404 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// An attachment; what comes is checked against its digest.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn get_blob(&self, digest: Digest, most: u64) -> Result<Bytes, ClientError> {
        let path = Path::new("crosstalk/blobs").part(&digest.to_string());
        let mut call = self.call(Method::GET, &path.text)?;
        call.most = most;
        call.within += Duration::from_secs(most / (64 << 10));
        let answer = self.run(call).await?;
        if Digest::of(&answer.body) != digest {
            return Err(unreadable(&answer, "it is not what the digest says"));
        }
        Ok(answer.body)
    }
}
