//! `cargo xtask extension`: the browser extension in `target/extension/{chromium,firefox}`, and its tests.

use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use crate::suite::Tier;
use crate::tree::{self, target};
use crate::{binary, js, npm};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The browsers that a folder is built for.
const BROWSERS: [&str; 2] = ["chromium", "firefox"];
/// The files that are copied as they are.
const SOURCES: [&str; 5] = ["background.js", "content", "icons", "lib", "pages"];
/// What the extension needs of the npm package.
const PACKAGE: [&str; 6] = [
    "core.js",
    "core_bg.wasm",
    "error.js",
    "events.js",
    "index.js",
    "relay.js",
];
/// What npm is told to install for the tests: the driver of the browsers, checks, and editors of known chats.
const TOOLS: &str = "puppeteer-core@24 web-ext@8 axe-core@4 esbuild@0.25 prosemirror-state@1 prosemirror-view@1 \
    prosemirror-model@1 prosemirror-schema-basic@1 prosemirror-history@1 prosemirror-keymap@1 prosemirror-commands@1 \
    lexical@0.38 @lexical/rich-text@0.38 @lexical/history@0.38";

/// `cargo xtask extension`.
pub fn task(root: &Path) -> Result<Ending, Failure> {
    js::task(root)?;
    build(root)
}

/// Builds the folders from the sources and the npm package.
fn build(root: &Path) -> Result<Ending, Failure> {
    let source = root.join("js/extension");
    let built = target(root).join("extension");
    for browser in BROWSERS {
        let folder = built.join(browser);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        for name in SOURCES {
            copy(&source.join(name), &folder.join(name))?;
        }
        let package = folder.join("ai-crosstalk");
        fs::create_dir_all(&package)?;
        for name in PACKAGE {
            fs::copy(root.join("js/dist").join(name), package.join(name))?;
        }
        for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
            fs::copy(root.join(name), folder.join(name))?;
        }
        let mut manifest = read_json(&source.join("manifest.json"))?;
        let own = read_json(&source.join(format!("manifest.{browser}.json")))?;
        if let (Some(manifest), Value::Object(own)) = (manifest.as_object_mut(), own) {
            manifest.extend(own);
        }
        let text = serde_json::to_string_pretty(&manifest)
            .map_err(|e| Failure::new(e.to_string(), "cargo xtask extension"))?;
        fs::write(folder.join("manifest.json"), text + "\n")?;
    }
    Ok(Ending::Done(
        "target/extension: chromium, firefox".to_owned(),
    ))
}

/// `cargo xtask extension-test`: the extension in real Chromium and Firefox, with a real relay.
pub fn test(root: &Path, tier: Tier) -> Result<Ending, Failure> {
    // The check of everything has just built the npm package.
    if !is_package_fresh(root)? {
        js::task(root)?;
    }
    build(root)?;
    let tools = install_tools(root)?;
    let program = binary::program(root)?;
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    let mut tests = Invocation::new("node js/extension/test/run.mjs")
        .env("CROSSTALK_NPM", &shown(&tools))
        .env(
            "CROSSTALK_EXTENSION",
            &shown(&target(root).join("extension")),
        )
        .env("CROSSTALK_BINARY", &shown(&program));
    if tier == Tier::Full {
        tests = tests.env("CROSSTALK_TEST_FULL", "1");
    }
    tests.run(root)
}

/// Whether the npm package is newer than everything that it is made of.
fn is_package_fresh(root: &Path) -> Result<bool, Failure> {
    let Ok(built) = fs::metadata(root.join("js/dist/core_bg.wasm")).and_then(|m| m.modified())
    else {
        return Ok(false);
    };
    let crates =
        ["envelope", "protocol", "binding", "wasm"].map(|c| format!("crates/crosstalk-{c}"));
    for folder in crates.iter().map(String::as_str).chain(["js/src"]) {
        for path in tree::files(&root.join(folder))? {
            if fs::metadata(path)?.modified()? > built {
                return Ok(false);
            }
        }
    }
    Ok(root.join("js/dist/relay.js").is_file())
}

/// Installs the tools from npm, which the tests of the console use, too.
pub fn install_tools(root: &Path) -> Result<PathBuf, Failure> {
    let (folder, _) = npm::install(root, "extension", TOOLS, |_| Ok(()))?;
    Ok(folder)
}

fn read_json(path: &Path) -> Result<Value, Failure> {
    let text = fs::read_to_string(path)?;
    serde_json::from_str(&text)
        .map_err(|e| Failure::new(format!("{}: {e}", path.display()), "cargo xtask extension"))
}

/// Copies a file, or a folder with everything in it.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    if !from.is_dir() {
        fs::copy(from, to)?;
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
