//! Packs the assets: each gets a name with the digest of its bytes, so that browsers may keep it for ever, and a form that is
//! compressed ahead of time.

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The constant, the file, the name that it is served under and its type.
const ASSETS: [(&str, &str, &str, &str, &str); 5] = [
    (
        "STYLE",
        "console.css",
        "console",
        "css",
        "text/css; charset=utf-8",
    ),
    (
        "SCRIPT",
        "console.js",
        "console",
        "js",
        "text/javascript; charset=utf-8",
    ),
    (
        "HTMX",
        "vendor/htmx-2.0.11.min.js",
        "htmx",
        "js",
        "text/javascript; charset=utf-8",
    ),
    (
        "PROOF",
        "proof.js",
        "proof",
        "js",
        "text/javascript; charset=utf-8",
    ),
    ("ICON", "icon.svg", "icon", "svg", "image/svg+xml"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    println!("cargo:rerun-if-changed=build.rs");
    let (mut source, mut all) = (String::new(), String::new());
    for (constant, file, name, extension, media) in ASSETS {
        let path = Path::new("assets").join(file);
        println!("cargo:rerun-if-changed={}", path.display());
        let bytes = fs::read(&path)?;
        let digest = Sha256::digest(&bytes);
        let digest: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&bytes)?;
        let packed_path = out.join(format!("{name}.{extension}.gz"));
        fs::write(&packed_path, packed.finish()?)?;
        let plain = fs::canonicalize(&path)?;
        writeln!(
            source,
            "/// The asset `{file}`.\npub static {constant}: Asset = Asset {{\n    path: \"/assets/{name}.{digest}.{extension}\",\n    \
             media: \"{media}\",\n    bytes: include_bytes!({plain:?}),\n    packed: include_bytes!({packed_path:?}),\n}};"
        )?;
        write!(all, "&{constant}, ")?;
    }
    writeln!(
        source,
        "/// Every asset.\nstatic ALL: [&Asset; {}] = [{all}];",
        ASSETS.len()
    )?;
    fs::write(out.join("assets.rs"), source)?;
    Ok(())
}
