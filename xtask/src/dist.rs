//! `cargo xtask dist`: what is shipped, in `target/dist/packages/`, beside what Cargo builds with this profile.
//!
//! ```text
//! crosstalk                          the stripped program
//! crosstalk-VERSION-TARGET.tar.gz    with manual pages, completions, the systemd unit, licences
//! crosstalk_VERSION_ARCH.deb         the same as a Debian package
//! crosstalk-VERSION.cdx.json         the crates in the program (CycloneDX)
//! SHA256SUMS                         checksums of all of them
//! ```
//!
//! The same program gives the same files: times are those of the commit, owners are root, names are sorted.

mod check;
mod deb;
mod sbom;

pub use check::step;

use crate::binary;
use crate::ending::Failure;
use crate::invocation::Invocation;
use serde::Deserialize;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, io};

/// Which profile a task builds when it is not told otherwise.
pub const PROFILE: &str = "dist";

/// The profile of the tests. Its packages hold the program that the tests have built, so that the check need not build another.
pub const TESTS: &str = "dev";

/// The shells with completions: what `crosstalk completions` calls them, the file in the archive, and the file in the
/// Debian package for those that have a folder there.
const SHELLS: &[(&str, &str, Option<&str>)] = &[
    (
        "bash",
        "crosstalk.bash",
        Some("usr/share/bash-completion/completions/crosstalk"),
    ),
    (
        "zsh",
        "_crosstalk",
        Some("usr/share/zsh/vendor-completions/_crosstalk"),
    ),
    (
        "fish",
        "crosstalk.fish",
        Some("usr/share/fish/vendor_completions.d/crosstalk.fish"),
    ),
    ("elvish", "crosstalk.elv", None),
    ("powershell", "_crosstalk.ps1", None),
];

/// Files of the repository that go into the archive as they are.
const TEXTS: &[&str] = &["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// A release: the program, its target system, and the folders that it is packed in.
struct Release {
    root: PathBuf,
    /// `target/PROFILE/packages`.
    folder: PathBuf,
    /// Where files are put together, and the test installs them.
    work: PathBuf,
    /// The program that Cargo built.
    built: PathBuf,
    version: String,
    /// Such as `x86_64-unknown-linux-gnu`.
    target: String,
    /// The time of all files, in seconds since 1970.
    epoch: u64,
    /// Packages that Cargo compiled for the program, as `name version`; unknown for the program of the tests, which has the
    /// features of the whole workspace.
    compiled: Option<Vec<String>>,
}

impl Release {
    /// The file name of the bill of materials.
    fn bom_name(&self) -> String {
        format!("crosstalk-{}.cdx.json", self.version)
    }

    /// The name of the archive without its ending, which is the folder in it.
    fn archive_name(&self) -> String {
        format!("crosstalk-{}-{}", self.version, self.target)
    }
}

#[derive(Deserialize)]
struct Workspace {
    target_directory: PathBuf,
    packages: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    name: String,
    version: String,
}

/// One line of `cargo build --message-format json`.
#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    executable: Option<PathBuf>,
}

/// The folders of this machine that the compiler may write into the program, each with its name there.
fn builder_folders(root: &Path) -> [(String, &'static str); 2] {
    let home = env::var("HOME").unwrap_or_default();
    let crates = env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    [
        (crates, "/cargo"),
        (root.display().to_string(), "/crosstalk"),
    ]
}

/// Builds the program with this profile and looks up what the packages have to say about it.
fn build(root: &Path, profile: &str) -> Result<Release, Failure> {
    let json =
        Invocation::new("cargo metadata --format-version 1 --no-deps --locked").output(root)?;
    let workspace: Workspace =
        serde_json::from_str(&json).map_err(|e| format!("the output of cargo metadata: {e}"))?;
    let version = workspace
        .packages
        .into_iter()
        .find(|p| p.name == "crosstalk-cli")
        .map(|p| p.version)
        .ok_or_else(|| "cargo metadata does not list crosstalk-cli".to_owned())?;

    let (built, compiled) = if profile == TESTS {
        (binary::program(root)?, None)
    } else {
        let (built, compiled) = compile(root, profile)?;
        (built, Some(compiled))
    };
    let host = Invocation::new("rustc -vV").output(root)?;
    let target = host
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .ok_or_else(|| Failure::new("rustc did not name its host", "rustc -vV"))?
        .to_owned();
    let below = workspace.target_directory.join(profile);
    Ok(Release {
        root: root.to_path_buf(),
        folder: below.join("packages"),
        work: below.join("packages-work"),
        built,
        version,
        target,
        epoch: epoch(root),
        compiled,
    })
}

/// Compiles the program alone: where it is, and the packages that were compiled for it.
fn compile(root: &Path, profile: &str) -> Result<(PathBuf, Vec<String>), Failure> {
    let mut line = format!("cargo build --locked --profile {profile} -p crosstalk-cli");
    if profile == PROFILE {
        // Messages of a panic would name folders of this machine.
        let flags = builder_folders(root)
            .map(|(folder, name)| format!("\"--remap-path-prefix={folder}={name}\""));
        line += &format!(" --config build.rustflags=[{}]", flags.join(","));
    }
    Invocation::new(&line).run(root)?;
    // Nothing is left to build: this lists what went into the program.
    let messages =
        Invocation::new(&format!("{line} --quiet --message-format json")).output(root)?;
    read_messages(&messages)
        .ok_or_else(|| Failure::new("cargo did not say where the program is", line))
}

/// Where the program is, and the packages that were compiled for it, from the messages of a build.
fn read_messages(messages: &str) -> Option<(PathBuf, Vec<String>)> {
    let mut program = None;
    let mut compiled = Vec::new();
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<Message>(line) else {
            continue;
        };
        if message.reason != "compiler-artifact" {
            continue;
        }
        compiled.extend(message.package_id.as_deref().and_then(name_and_version));
        program = message.executable.or(program);
    }
    compiled.sort();
    compiled.dedup();
    Some((program?, compiled))
}

/// `name version` of a package id: `SOURCE#NAME@VERSION`, or `SOURCE/NAME#VERSION` where the folder has the name.
fn name_and_version(id: &str) -> Option<String> {
    let (source, rest) = id.rsplit_once('#')?;
    let (name, version) = match rest.split_once('@') {
        Some(both) => both,
        None => (source.rsplit('/').next()?, rest),
    };
    Some(format!("{name} {version}"))
}

/// The time of all files: `SOURCE_DATE_EPOCH`, else that of the commit, else 1970.
fn epoch(root: &Path) -> u64 {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    given
        .or_else(|| Invocation::new("git log -1 --format=%ct").output(root).ok())
        .and_then(|seconds| seconds.trim().parse().ok())
        .unwrap_or(0)
}

/// Writes everything; the result says what could not be made on this machine.
fn pack(release: &Release) -> Result<Option<String>, Failure> {
    for folder in [&release.folder, &release.work] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
    }
    let program = release.folder.join("crosstalk");
    Invocation::new("strip -o")
        .arg(&program)
        .arg(&release.built)
        .output(&release.root)?;
    fs::set_permissions(&program, Permissions::from_mode(0o755))?;

    let bom = sbom::write(release)?;
    fs::write(release.folder.join(release.bom_name()), bom)?;

    let pages = release.work.join("man");
    Invocation::program(&program)
        .arg("man")
        .arg("--out")
        .arg(&pages)
        .output(&release.root)?;
    archive(release, &pages)?;
    let note = match Invocation::new("dpkg-deb --version").succeeds(&release.root) {
        true => {
            deb::write(release, &pages)?;
            None
        }
        false => Some("no .deb: this machine has no dpkg-deb".to_owned()),
    };
    sum(release)?;
    Ok(note)
}

/// `crosstalk-VERSION-TARGET.tar.gz`.
fn archive(release: &Release, pages: &Path) -> Result<(), Failure> {
    let name = release.archive_name();
    let tree = release.work.join("archive");
    let top = tree.join(&name);
    copy(&release.folder.join("crosstalk"), &top.join("crosstalk"))?;
    for page in files(pages)? {
        copy(&page, &top.join("man/man1").join(name_of(&page)))?;
    }
    for (shell, file, _) in SHELLS {
        put(
            &top.join("completions").join(file),
            completions(release, shell)?,
        )?;
    }
    for text in TEXTS {
        copy(&release.root.join(text), &top.join(text))?;
    }
    for text in [
        "crosstalk.service",
        "relay.toml",
        "prometheus/crosstalk.rules.yml",
        "grafana/crosstalk.json",
    ] {
        let path = format!("deploy/{text}");
        copy(&release.root.join(&path), &top.join(&path))?;
    }
    copy(
        &release.folder.join(release.bom_name()),
        &top.join("sbom.cdx.json"),
    )?;
    set_modes(&tree)?;
    Invocation::new("tar --sort=name --owner=0 --group=0 --numeric-owner --format=ustar")
        .arg(format!("--mtime=@{}", release.epoch))
        .arg("--use-compress-program=gzip -9n")
        .arg("-C")
        .arg(&tree)
        .arg("-cf")
        .arg(release.folder.join(format!("{name}.tar.gz")))
        .arg(&name)
        .output(&release.root)?;
    Ok(())
}

/// The completion script of a shell, as the program prints it.
fn completions(release: &Release, shell: &str) -> Result<String, Failure> {
    Invocation::program(&release.folder.join("crosstalk"))
        .arg("completions")
        .arg(shell)
        .output(&release.root)
}

/// `SHA256SUMS`, in the form that `sha256sum -c` reads.
fn sum(release: &Release) -> Result<(), Failure> {
    let mut command = Invocation::new("sha256sum --");
    for path in files(&release.folder)? {
        command = command.arg(name_of(&path));
    }
    let sums = command.output(&release.folder)?;
    fs::write(release.folder.join("SHA256SUMS"), sums)?;
    Ok(())
}

/// The epoch in a form of `date`.
fn date(release: &Release, form: &str) -> Result<String, Failure> {
    let text = Invocation::new("date --utc")
        .arg(format!("--date=@{}", release.epoch))
        .arg(form)
        .env("LC_ALL", "C")
        .output(&release.root)?;
    Ok(text.trim_end().to_owned())
}

/// Copies a file, with the folders that it needs.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    put(to, fs::read(from)?)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())
}

/// Writes a file, with the folders that it needs.
fn put(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, content)
}

/// Gives every file 0644, or 0755 if its owner may run it, whatever the umask was.
fn set_modes(path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    let runs = metadata.is_dir() || metadata.permissions().mode() & 0o100 != 0;
    fs::set_permissions(
        path,
        Permissions::from_mode(if runs { 0o755 } else { 0o644 }),
    )?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            set_modes(&entry?.path())?;
        }
    }
    Ok(())
}

/// The files of a folder, sorted.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The last part of a path.
fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn build_messages_name_program_and_packages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","package_id":"registry+https://example/index#serde@1.0.1","executable":null}"#,
            "\n",
            r#"{"reason":"build-script-executed","package_id":"registry+https://example/index#other@1.0.0"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","package_id":"path+file:///src/crates/tool#0.1.0","executable":"/t/tool"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        let (program, compiled) = read_messages(messages).unwrap();
        assert_eq!(program, Path::new("/t/tool"));
        assert_eq!(compiled, ["serde 1.0.1", "tool 0.1.0"]);
        assert_eq!(read_messages("{}"), None);
    }

    #[test]
    fn modes_do_not_depend_on_the_umask() {
        let scratch = Scratch::new();
        scratch.write("a/text", "");
        scratch.write("a/program", "");
        let mode = |path: &str, mode| {
            let path = scratch.path().join(path);
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        mode("a/text", 0o600);
        mode("a/program", 0o700);
        mode("a", 0o700);
        set_modes(&scratch.path().join("a")).unwrap();
        for (path, wanted) in [("a", 0o755), ("a/text", 0o644), ("a/program", 0o755)] {
            let found = fs::metadata(scratch.path().join(path)).unwrap();
            assert_eq!(found.permissions().mode() & 0o777, wanted, "{path}");
        }
    }
}
