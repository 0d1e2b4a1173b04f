//! Threads and messages as resources.

use crate::port::{AgentPort, AgentThread};
use crate::server::written;
use crosstalk_envelope::Explanation;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};

const THREAD: &str = "crosstalk://thread/";
const MESSAGE: &str = "crosstalk://message/";
const PLAIN: &str = "text/plain";
/// How many threads are listed.
const LISTED: usize = 50;

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{THREAD}{{id}}"), "thread")
            .with_description("The messages of a thread")
            .with_mime_type(PLAIN),
        ResourceTemplate::new(format!("{MESSAGE}{{id}}"), "message")
            .with_description("A message")
            .with_mime_type(PLAIN),
    ]
}

/// The latest threads of an address. Their names are ids, which others may have chosen: one that reads as a sentence or has
/// characters that nobody sees is not listed. check shows its messages.
pub(crate) async fn list(port: &dyn AgentPort) -> Result<Vec<Resource>, Explanation> {
    let threads = port.threads(LISTED).await?;
    let is_plain = |thread: &AgentThread| crate::one_line(&thread.id) == thread.id;
    let resource = |thread: AgentThread| {
        let id = &thread.id;
        Resource::new(format!("{THREAD}{id}"), format!("thread {id}"))
            .with_description(format!(
                "{} messages, the latest at {}",
                thread.messages, thread.last_at
            ))
            .with_mime_type(PLAIN)
    };
    Ok(threads.into_iter().filter(is_plain).map(resource).collect())
}

/// The id in the URI of a thread or a message.
pub(crate) fn id_of(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix(THREAD).or(uri.strip_prefix(MESSAGE))?;
    (!id.is_empty()).then_some(id)
}

pub(crate) async fn read(
    port: &dyn AgentPort,
    uri: &str,
    id: &str,
) -> Result<Vec<ResourceContents>, Explanation> {
    let messages = port.read(id.to_owned(), false).await?;
    let texts: Vec<String> = messages.iter().map(written).collect();
    let contents = ResourceContents::text(texts.join("\n\n"), uri).with_mime_type(PLAIN);
    Ok(vec![contents])
}
