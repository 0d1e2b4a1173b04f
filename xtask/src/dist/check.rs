//! The test of the packages: they are made, installed into a scratch folder, and used from there.

use super::{PROFILE, Release, SHELLS, build, builder_folders, files, name_of, pack};
use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// `cargo xtask dist`, and a step of `cargo xtask test`: makes the packages with this profile and uses them as a user would.
pub fn step(root: &Path, profile: &str) -> Result<Ending, Failure> {
    make_and_use(root, profile).map_err(|mut failure| {
        let again = || format!("cargo xtask dist --profile {profile}");
        failure.again.get_or_insert_with(again);
        failure
    })
}

fn make_and_use(root: &Path, profile: &str) -> Result<Ending, Failure> {
    let release = build(root, profile)?;
    let note = pack(&release)?;
    let sums = check_sums(&release)?;
    check_materials(&release)?;
    if profile == PROFILE {
        check_paths(&release)?;
    }
    check_archive(&release)?;
    let deb = find_deb(&release)?;
    let how = match &deb {
        Some(deb) => check_deb(&release, deb)?,
        None => "unpacked",
    };
    // A second time gives the same bytes.
    pack(&release)?;
    if check_sums(&release)? != sums {
        return Err(wrong("packing the same program twice gave different files"));
    }
    fs::remove_dir_all(&release.work)?;
    let kinds = match deb {
        Some(_) => ".deb and .tar.gz",
        None => ".tar.gz",
    };
    let note = note.map_or_else(String::new, |note| format!("; {note}"));
    let folder = release.folder.strip_prefix(root);
    let folder = folder.unwrap_or(&release.folder).display();
    Ok(Ending::Done(format!(
        "{kinds} in {folder}: {how}, and the demo runs from there{note}"
    )))
}

fn wrong(message: impl Into<String>) -> Failure {
    message.into().into()
}

/// The program names no folder of the machine that built it.
fn check_paths(release: &Release) -> Result<(), Failure> {
    let program = fs::read(&release.built)?;
    for (folder, _) in builder_folders(&release.root) {
        let wanted = folder.as_bytes();
        if program.windows(wanted.len()).any(|part| part == wanted) {
            return Err(wrong(format!("the program names the folder {folder}")));
        }
    }
    Ok(())
}

/// Every file has a checksum, and every checksum is right.
fn check_sums(release: &Release) -> Result<String, Failure> {
    Invocation::new("sha256sum --check --strict --quiet SHA256SUMS").output(&release.folder)?;
    let sums = fs::read_to_string(release.folder.join("SHA256SUMS"))?;
    let listed: Vec<&str> = sums
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(_, name)| name)
        .collect();
    for path in files(&release.folder)? {
        let name = name_of(&path);
        if name != "SHA256SUMS" && !listed.contains(&name.as_str()) {
            return Err(wrong(format!("SHA256SUMS does not list {name}")));
        }
    }
    Ok(sums)
}

/// The bill of materials is complete; where it is known which crates Cargo compiled for the program, it lists them and no others.
fn check_materials(release: &Release) -> Result<(), Failure> {
    let text = fs::read_to_string(release.folder.join(release.bom_name()))?;
    let problems = compare_materials(&text, release.compiled.as_deref()).map_err(wrong)?;
    match problems.is_empty() {
        true => Ok(()),
        false => Err(wrong(problems.join("\n"))),
    }
}

/// Lists the faults of a bill of materials, given the crates that were compiled as `name version`, if they are known.
fn compare_materials(bom: &str, compiled: Option<&[String]>) -> Result<Vec<String>, String> {
    let bom: Value =
        serde_json::from_str(bom).map_err(|e| format!("the bill of materials: {e}"))?;
    let main = bom.pointer("/metadata/component");
    let components = bom.get("components").and_then(Value::as_array);
    let mut problems = Vec::new();
    let mut listed = BTreeSet::new();
    for component in components.into_iter().flatten().chain(main) {
        let field = |name| component.get(name).and_then(Value::as_str).unwrap_or("");
        let key = format!("{} {}", field("name"), field("version"));
        if component.get("licenses").is_none() {
            problems.push(format!("{key} has no licence"));
        }
        let parts = component.get("components").and_then(Value::as_array);
        if field("name") == "libsqlite3-sys" && parts.is_none_or(Vec::is_empty) {
            problems.push(format!("{key} does not say which SQLite it brings"));
        }
        let ours = field("name").starts_with("crosstalk-");
        if component.get("hashes").is_none() && !ours {
            problems.push(format!("{key} has no checksum"));
        }
        listed.insert(key);
    }
    let Some(compiled) = compiled else {
        return Ok(problems);
    };
    let compiled: BTreeSet<String> = compiled.iter().cloned().collect();
    for key in compiled.difference(&listed) {
        problems.push(format!("{key} is in the program and is not listed"));
    }
    for key in listed.difference(&compiled) {
        problems.push(format!("{key} is listed and is not in the program"));
    }
    Ok(problems)
}

fn find_deb(release: &Release) -> Result<Option<PathBuf>, Failure> {
    let all = files(&release.folder)?;
    Ok(all
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "deb")))
}

/// The archive is unpacked, and has everything.
fn check_archive(release: &Release) -> Result<(), Failure> {
    let place = fresh(&release.work.join("unpacked"))?;
    let name = release.archive_name();
    Invocation::new("tar -xzf")
        .arg(release.folder.join(format!("{name}.tar.gz")))
        .output(&place)?;
    let top = place.join(name);
    for (_, file, _) in SHELLS {
        check_text(&top.join("completions").join(file), "crosstalk")?;
    }
    check_text(&top.join("man/man1/crosstalk.1"), ".TH crosstalk 1")?;
    for text in super::TEXTS {
        check_text(&top.join(text), "")?;
    }
    check_text(&top.join("sbom.cdx.json"), "CycloneDX")?;
    check_text(&top.join("deploy/crosstalk.service"), "ExecStart=")?;
    check_program(release, &top.join("crosstalk"))
}

/// The package is installed into a root of its own, has everything, and leaves nothing when it is removed.
///
/// Returns how: without the rights of root, its files are unpacked, and its scripts do not run.
fn check_deb(release: &Release, deb: &Path) -> Result<&'static str, Failure> {
    let place = fresh(&release.work.join("root"))?;
    // Only root can give files to root, which dpkg does; others unpack the files alone.
    let user = Invocation::new("id -u").output(&release.root)?;
    let installs = user.trim() == "0";
    let dpkg = |line: &str| {
        // Some systems leave out manual pages and documentation.
        Invocation::new("dpkg --force-depends --force-script-chrootless --path-include=/usr/*")
            .arg(format!("--root={}", place.display()))
            .arg(format!("--log={}", release.work.join("dpkg.log").display()))
            .arg(line)
            .env("LC_ALL", "C")
    };
    if installs {
        for folder in ["info", "updates"] {
            fs::create_dir_all(place.join("var/lib/dpkg").join(folder))?;
        }
        fs::write(place.join("var/lib/dpkg/status"), "")?;
        fs::create_dir_all(place.join("etc"))?;
        dpkg("--install").arg(deb).output(&release.root)?;
        let changed = dpkg("--verify").arg("crosstalk").output(&release.root)?;
        if !changed.is_empty() {
            return Err(wrong(format!(
                "dpkg --verify finds changed files: {changed}"
            )));
        }
    } else {
        Invocation::new("dpkg-deb -x")
            .arg(deb)
            .arg(&place)
            .output(&release.root)?;
    }

    check_pages(release, &place)?;
    for place_of_script in SHELLS.iter().filter_map(|(_, _, place)| *place) {
        check_text(&place.join(place_of_script), "crosstalk")?;
    }
    let unit = place.join("usr/lib/systemd/system/crosstalk.service");
    check_text(&unit, "\nExecStart=/usr/bin/crosstalk serve ")?;
    check_text(
        &place.join("usr/lib/sysusers.d/crosstalk.conf"),
        "u crosstalk ",
    )?;
    let doc = place.join("usr/share/doc/crosstalk");
    check_text(&doc.join("copyright"), "License: MIT")?;
    check_gzip(release, &doc.join("changelog.gz"), &release.version)?;
    check_gzip(release, &doc.join("sbom.cdx.json.gz"), "CycloneDX")?;
    check_program(release, &place.join("usr/bin/crosstalk"))?;

    if installs {
        dpkg("--purge").arg("crosstalk").output(&release.root)?;
        let left = place.join("usr");
        if left.exists() {
            return Err(wrong(format!(
                "the removed package left {}",
                left.display()
            )));
        }
        Ok("installed")
    } else {
        Ok("unpacked (only root can install)")
    }
}

/// There is a page for each command, in the form that `man` reads.
fn check_pages(release: &Release, place: &Path) -> Result<(), Failure> {
    let pages = files(&place.join("usr/share/man/man1"))?;
    if pages.len() < 20 {
        let message = format!("only {} manual pages are installed", pages.len());
        return Err(wrong(message));
    }
    for page in pages {
        let name = name_of(&page);
        let title = name.strip_suffix(".1.gz").unwrap_or(&name);
        check_gzip(release, &page, &format!(".TH {title} 1"))?;
    }
    Ok(())
}

/// The file is compressed, without a name and a time of its own, and has this text.
fn check_gzip(release: &Release, path: &Path, part: &str) -> Result<(), Failure> {
    let bytes = fs::read(path).map_err(|e| wrong(format!("{}: {e}", path.display())))?;
    // RFC 1952: the fourth byte has the flags, four bytes of time follow it.
    if bytes.get(3..8) != Some(&[0; 5]) {
        let message = format!("{} has a name or a time inside", path.display());
        return Err(wrong(message));
    }
    let text = Invocation::new("gzip -dc")
        .arg(path)
        .output(&release.root)?;
    check_part(path, &text, part)
}

fn check_text(path: &Path, part: &str) -> Result<(), Failure> {
    let text = fs::read_to_string(path).map_err(|e| wrong(format!("{}: {e}", path.display())))?;
    check_part(path, &text, part)
}

fn check_part(path: &Path, text: &str, part: &str) -> Result<(), Failure> {
    match !text.is_empty() && text.contains(part) {
        true => Ok(()),
        false => Err(wrong(format!("{} lacks `{part}`", path.display()))),
    }
}

/// The program says its version and plays its demo, for a user who has nothing yet.
fn check_program(release: &Release, program: &Path) -> Result<(), Failure> {
    let version = use_program(release, program, &["--version"])?;
    let wanted = format!("crosstalk {}", release.version);
    check_part(program, &version, &wanted)?;
    let told = use_program(release, program, &["demo", "--no-pause"])?;
    check_part(program, &told, "audit")
}

/// The output of the program in an empty home folder, without the variables of the person who runs the test.
fn use_program(release: &Release, program: &Path, words: &[&str]) -> Result<String, Failure> {
    let home = fresh(&release.work.join("home"))?;
    let output = Invocation::program(program)
        .command(&home)
        .args(words)
        .env_clear()
        .env("HOME", &home)
        .env("TMPDIR", &home)
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(wrong(format!(
        "{} {} ended with {}:\n{}{}",
        program.display(),
        words.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )))
}

/// An empty folder with this path.
fn fresh(path: &Path) -> Result<PathBuf, Failure> {
    if path.exists() {
        fs::remove_dir_all(path)?;
    }
    fs::create_dir_all(path)?;
    Ok(path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bom(crates: &[&str]) -> String {
        let components: Vec<Value> = crates
            .iter()
            .map(|name| json!({"name": name, "version": "1.0.0", "licenses": [], "hashes": []}))
            .collect();
        let main = json!({"name": "crosstalk-cli", "version": "0.1.0", "licenses": []});
        json!({"metadata": {"component": main}, "components": components}).to_string()
    }

    #[test]
    fn materials_are_those_that_were_compiled() {
        let compiled = ["alpha 1.0.0", "crosstalk-cli 0.1.0"].map(str::to_owned);
        let check = |crates: &[&str]| compare_materials(&bom(crates), Some(&compiled)).unwrap();
        assert_eq!(check(&["alpha"]), [""; 0]);
        assert_eq!(
            check(&[]),
            ["alpha 1.0.0 is in the program and is not listed"]
        );
        assert_eq!(
            check(&["alpha", "tester"]),
            ["tester 1.0.0 is listed and is not in the program"]
        );
        assert!(compare_materials("{", Some(&compiled)).is_err());
    }

    #[test]
    fn materials_have_licence_and_checksum() {
        let compiled = ["alpha 1.0.0", "crosstalk-cli 0.1.0"].map(str::to_owned);
        for (field, problem) in [("licenses", "licence"), ("hashes", "checksum")] {
            let mut bom: Value = serde_json::from_str(&bom(&["alpha"])).unwrap();
            bom["components"][0].as_object_mut().unwrap().remove(field);
            let found = compare_materials(&bom.to_string(), Some(&compiled)).unwrap();
            assert_eq!(found, [format!("alpha 1.0.0 has no {problem}")]);
        }
    }
}
