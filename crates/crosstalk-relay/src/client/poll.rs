//! Polls at a relay.

use super::{Client, ClientError, Path};
use http::Method;
use serde_json::{Value, json};

impl Client {
    /// How a poll stands: a collation of the form `crosstalk.poll/1`, with its state.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn poll(&self, id: &str) -> Result<Value, ClientError> {
        self.get(Path::new("crosstalk/polls").part(id)).await
    }

    /// Closes a poll now. Its result.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn close_poll(&self, id: &str) -> Result<Value, ClientError> {
        let path = Path::new("crosstalk/polls").part(id).part("close");
        self.put(Method::POST, &path.text, &json!({})).await
    }
}
