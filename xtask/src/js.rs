//! `cargo xtask js`: the npm package `ai-crosstalk` in `js/dist`, and its tests.

mod size;

use crate::binary;
use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use crate::npm;
use crate::package;
use crate::suite::Tier;
use crate::tree::target;
use size::WasmModule;
use std::fs;
use std::path::{Path, PathBuf};

const TARGET: &str = "wasm32-unknown-unknown";
/// The largest module that the package may have, in bytes, and the largest after gzip.
const MAX_WASM_BYTES: usize = 900_000;
const MAX_GZIP_BYTES: usize = 350_000;

/// What npm is told to install for the build and the tests.
const TOOLS: &str = "binaryen@123 typescript@5 deno@2 bun@1 playwright-core@1";
/// Features of WebAssembly that every supported browser has, and that the compiler uses.
const FEATURES: &str = "--enable-bulk-memory --enable-nontrapping-float-to-int --enable-sign-ext \
    --enable-mutable-globals --enable-reference-types --enable-multivalue --enable-simd";

/// `cargo xtask js`.
pub fn task(root: &Path) -> Result<Ending, Failure> {
    let tools = install_tools(root)?;
    let dist = root.join("js/dist");
    // A file of an older build must not get into the package.
    let _ = fs::remove_dir_all(&dist);
    fs::create_dir_all(&dist)?;
    let module = compile(root, &tools, "crosstalk-wasm", &dist, "core")?;
    for entry in fs::read_dir(root.join("js/src"))? {
        let entry = entry?;
        fs::copy(entry.path(), dist.join(entry.file_name()))?;
    }
    for file in [
        "js/package.json",
        "js/README.md",
        "js/config.example.json",
        "LICENSE-MIT",
        "LICENSE-APACHE",
    ] {
        let path = root.join(file);
        let name = path.file_name().unwrap_or_default();
        fs::copy(&path, dist.join(name))?;
    }
    print!("{}", module.costs());
    let (bytes, gzip) = (
        module.size(),
        compressed_size(root, &dist.join("core_bg.wasm"))?,
    );
    let sizes = format!("js/dist: {bytes} bytes of wasm, {gzip} after gzip");
    if bytes > MAX_WASM_BYTES || gzip > MAX_GZIP_BYTES {
        let most = format!("at most {MAX_WASM_BYTES} and {MAX_GZIP_BYTES} are allowed");
        return Err(Failure::new(format!("{sizes}; {most}"), "cargo xtask js"));
    }
    Ok(Ending::Done(sizes))
}

/// `cargo xtask js-test`: the package as npm installs it, with every case of the conformance suite in Node, Deno, Bun and Chromium.
pub fn test(root: &Path, tier: Tier) -> Result<Ending, Failure> {
    package::step(root)?;
    task(root)?;
    let tools = install_tools(root)?;
    let suite = target(root).join("js/suite");
    bind(root, "crosstalk-conformance-wasm", &suite, "suite")?;
    let program = binary::program(root)?;
    let mut tests = Invocation::new("node js/test/run.mjs")
        .env_path("CROSSTALK_NPM", &tools)
        .env_path("CROSSTALK_SUITE", &suite)
        .env_path("CROSSTALK_BINARY", &program);
    if tier == Tier::Full {
        tests = tests.env("CROSSTALK_TEST_FULL", "1");
    }
    tests.run(root)
}

/// `cargo xtask bench js`: the package as it is shipped, in Node.js.
pub fn bench(root: &Path, words: &[String]) -> Result<Ending, Failure> {
    task(root)?;
    Invocation::new("npm install --prefix bench/js --no-audit --no-fund --no-package-lock")
        .run(root)?;
    Invocation::new("node bench/js/main.mjs")
        .args(&words.join(" "))
        .run(root)
}

/// Installs the tools from npm, and the target of the compiler.
pub fn install_tools(root: &Path) -> Result<PathBuf, Failure> {
    let (folder, _) = npm::install(root, "npm", TOOLS, |_| Ok(()))?;
    let has = Invocation::new("rustup target list --installed").output(root)?;
    if !has.lines().any(|line| line == TARGET) {
        Invocation::new(&format!("rustup target add {TARGET}")).run(root)?;
    }
    Ok(folder)
}

/// Compiles a library to WebAssembly, and writes its module into a folder.
fn bind(root: &Path, package: &str, folder: &Path, name: &str) -> Result<Ending, Failure> {
    let build = format!("cargo build --quiet --profile wasm --target {TARGET} -p {package}");
    Invocation::new(&build).run(root)?;
    let library = package.replace('-', "_") + ".wasm";
    let library = target(root).join(TARGET).join("wasm").join(library);
    Invocation::new("cargo run --quiet -p xtask-wasm --")
        .arg(library)
        .arg(folder)
        .arg(name)
        .run(root)
}

/// Compiles a library to WebAssembly, optimised for size, and writes its module into a folder.
fn compile(
    root: &Path,
    tools: &Path,
    package: &str,
    folder: &Path,
    name: &str,
) -> Result<WasmModule, Failure> {
    bind(root, package, folder, name)?;
    let file = folder.join(format!("{name}_bg.wasm"));
    Invocation::new("node")
        .arg(tools.join("node_modules/binaryen/bin/wasm-opt"))
        .args(&format!("-Oz --converge -g {FEATURES}"))
        .arg(&file)
        .args("-o")
        .arg(&file)
        .run(root)?;
    let module = WasmModule::read(&fs::read(&file)?)
        .ok_or_else(|| Failure::new("the module can't be read", "cargo xtask js"))?;
    fs::write(&file, module.stripped())?;
    Ok(module)
}

/// The number of bytes after gzip, as a server would send the file.
fn compressed_size(root: &Path, file: &Path) -> Result<usize, Failure> {
    let gzip = Invocation::new("gzip -9 --keep --stdout").arg(file);
    Ok(gzip.output_bytes(root)?.len())
}
