//! MCP clients from npm that tests talk to.

use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use crate::package;
use crate::tree::target;
use std::fs;
use std::path::Path;

/// A client that checks a server, three coding agents, and the tokenizer that counts what tools cost them.
const CLIENTS: &str = "@modelcontextprotocol/inspector@0 gpt-tokenizer@4 @anthropic-ai/claude-code@2 @google/gemini-cli@0 \
    @openai/codex@0";

/// Installs the MCP clients that tests need and the machine does not have.
pub fn step(root: &Path) -> Result<Ending, Failure> {
    let folder = target(root).join("tools/mcp-clients");
    let note = folder.join("requirement");
    if fs::read_to_string(&note).unwrap_or_default() == CLIENTS {
        return Ok(Ending::Done(String::new()));
    }
    package::step(root)?;
    fs::create_dir_all(&folder)?;
    let place = folder.display();
    let flags = "--silent --no-save --no-audit --no-fund --no-package-lock";
    Invocation::new(&format!("npm install {flags} --prefix {place} {CLIENTS}")).run(root)?;
    // It puts the program of this platform in its place; npm may not run it by itself.
    let claude = folder.join("node_modules/@anthropic-ai/claude-code");
    Invocation::new("node install.cjs").run(&claude)?;
    fs::write(note, CLIENTS)?;
    Ok(Ending::Done("installed MCP clients".to_owned()))
}
