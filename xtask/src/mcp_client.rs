//! MCP clients from npm that tests talk to.

use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use crate::{npm, package};
use std::path::Path;

/// A client that checks a server, three coding agents, and the tokenizer that counts what tools cost them.
const CLIENTS: &str = "@modelcontextprotocol/inspector@0 gpt-tokenizer@4 @anthropic-ai/claude-code@2 @google/gemini-cli@0 \
    @openai/codex@0";

/// Installs the MCP clients that tests need and the machine does not have.
pub fn step(root: &Path) -> Result<Ending, Failure> {
    package::step(root)?;
    let (_, is_new) = npm::install(root, "mcp-clients", CLIENTS, |folder| {
        // It puts the program of this platform in its place; npm may not run it by itself.
        let claude = folder.join("node_modules/@anthropic-ai/claude-code");
        Invocation::new("node install.cjs").run(&claude).map(drop)
    })?;
    Ok(Ending::Done(match is_new {
        true => "installed MCP clients".to_owned(),
        false => String::new(),
    }))
}
