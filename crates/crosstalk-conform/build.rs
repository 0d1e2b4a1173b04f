//! Packs the case files of `conformance/` into one file that is part of the program: an implementer starts with nothing
//! but the binary.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new("../../conformance");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut cases: Vec<(String, Vec<u8>)> = Vec::new();
    for area in fs::read_dir(folder)? {
        let area = area?.path();
        if !area.is_dir() {
            continue;
        }
        for file in fs::read_dir(&area)? {
            let file = file?.path();
            if file.extension().is_some_and(|e| e == "case") {
                cases.push((id(&area, &file), fs::read(&file)?));
            }
        }
    }
    cases.sort();
    let mut packed = Vec::new();
    for (id, content) in cases {
        packed.extend_from_slice(format!("{id}\n{}\n", content.len()).as_bytes());
        packed.extend_from_slice(&content);
    }
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    let out = PathBuf::from(out);
    fs::write(out.join("cases"), packed)?;
    fs::copy(folder.join("levels.toml"), out.join("levels.toml"))?;
    Ok(())
}

fn id(area: &Path, file: &Path) -> String {
    let name = |path: &Path| {
        let stem = path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    };
    format!("{}/{}", name(area), name(file))
}
