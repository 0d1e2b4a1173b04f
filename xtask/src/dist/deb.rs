//! The Debian package: the program, its pages and completions, and a systemd unit that nobody starts unasked.

use super::{Release, SHELLS, completions, copy, date, files, name_of, put, set_modes};
use crate::ending::Failure;
use crate::invocation::Invocation;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The maintainer that the package names.
const MAINTAINER: &str = "The Crosstalk authors <crosstalk@localhost.localdomain>";

/// Scripts that dpkg runs, and the account of the relay, from `deploy/debian/`.
const SCRIPTS: &[&str] = &["postinst", "prerm"];

/// Writes `crosstalk_VERSION_ARCH.deb`.
pub fn write(release: &Release, pages: &Path) -> Result<(), Failure> {
    let tree = release.work.join("deb");
    let architecture =
        architecture(&release.target).ok_or_else(|| format!("Debian has no {}", release.target))?;
    fill(release, pages, &tree)?;
    set_modes(&tree)?;
    let kib = installed_kib(&tree)?;

    let program = release.folder.join("crosstalk");
    let symbols = Invocation::new("readelf --wide --dynamic --version-info")
        .arg(&program)
        .env("LC_ALL", "C")
        .output(&release.root)?;
    let depends = depends(&symbols)?;
    let control = control(&release.version, architecture, kib, &depends);
    put(&tree.join("DEBIAN/control"), control)?;
    let deploy = release.root.join("deploy/debian");
    for script in SCRIPTS {
        let to = tree.join("DEBIAN").join(script);
        copy(&deploy.join(script), &to)?;
        fs::set_permissions(&to, Permissions::from_mode(0o755))?;
    }
    let sums = checksums(&tree)?;
    put(&tree.join("DEBIAN/md5sums"), sums)?;
    set_modes(&tree)?;

    let name = format!("crosstalk_{}_{architecture}.deb", release.version);
    Invocation::new("dpkg-deb --root-owner-group -Zxz -z1 --build")
        .arg(&tree)
        .arg(release.folder.join(name))
        .env("SOURCE_DATE_EPOCH", &release.epoch.to_string())
        .output(&release.root)?;
    Ok(())
}

/// Puts the files of the package into `tree`, as they will be below `/`.
fn fill(release: &Release, pages: &Path, tree: &Path) -> Result<(), Failure> {
    let program = release.folder.join("crosstalk");
    copy(&program, &tree.join("usr/bin/crosstalk"))?;
    let man = tree.join("usr/share/man/man1");
    for page in files(pages)? {
        copy(&page, &man.join(name_of(&page)))?;
    }
    compress(release, &files(&man)?)?;
    for (shell, _, place) in SHELLS {
        if let Some(place) = place {
            put(&tree.join(place), completions(release, shell)?)?;
        }
    }
    let deploy = release.root.join("deploy");
    let service = fs::read_to_string(deploy.join("crosstalk.service"))?;
    let unit = tree.join("usr/lib/systemd/system/crosstalk.service");
    put(&unit, packaged_unit(&service))?;
    copy(
        &deploy.join("debian/crosstalk.sysusers"),
        &tree.join("usr/lib/sysusers.d/crosstalk.conf"),
    )?;

    let doc = tree.join("usr/share/doc/crosstalk");
    copy(&deploy.join("debian/copyright"), &doc.join("copyright"))?;
    copy(&deploy.join("relay.toml"), &doc.join("examples/relay.toml"))?;
    copy(&release.root.join("README.md"), &doc.join("README.md"))?;
    copy(&release.root.join("CHANGELOG.md"), &doc.join("NEWS.md"))?;
    copy(
        &release.folder.join(release.bom_name()),
        &doc.join("sbom.cdx.json"),
    )?;
    let entry = format!(
        "crosstalk ({}) unstable; urgency=medium\n\n  * See NEWS.md.gz.\n\n -- {MAINTAINER}  {}\n",
        release.version,
        date(release, "+%a, %d %b %Y %H:%M:%S +0000")?
    );
    put(&doc.join("changelog"), entry)?;
    let long = ["README.md", "NEWS.md", "changelog", "sbom.cdx.json"].map(|name| doc.join(name));
    compress(release, &long)
}

/// Compresses files so that the same text gives the same bytes.
fn compress(release: &Release, paths: &[PathBuf]) -> Result<(), Failure> {
    let mut command = Invocation::new("gzip -9n --");
    for path in paths {
        command = command.arg(path);
    }
    command.output(&release.root).map(|_| ())
}

/// The unit for a program that a package installed: no steps to install it by hand, and the program in `/usr/bin`.
fn packaged_unit(unit: &str) -> String {
    let body = unit.find("[Unit]").and_then(|at| unit.get(at..));
    let head = "# A relay under systemd: systemctl enable --now crosstalk\n\
                # Its data is in /var/lib/crosstalk, its configuration in /var/lib/crosstalk/relay.toml.\n\n";
    let body = body.unwrap_or(unit);
    format!("{head}{body}").replace("/usr/local/bin/", "/usr/bin/")
}

/// The architecture of Debian for a target of Rust.
fn architecture(target: &str) -> Option<&'static str> {
    match target {
        "x86_64-unknown-linux-gnu" => Some("amd64"),
        "aarch64-unknown-linux-gnu" => Some("arm64"),
        "armv7-unknown-linux-gnueabihf" => Some("armhf"),
        "i686-unknown-linux-gnu" => Some("i386"),
        "powerpc64le-unknown-linux-gnu" => Some("ppc64el"),
        "riscv64gc-unknown-linux-gnu" => Some("riscv64"),
        "s390x-unknown-linux-gnu" => Some("s390x"),
        _ => None,
    }
}

/// The packages that the program needs, from what `readelf` says about it: its libraries, and the newest version of the
/// C library that a symbol asks for.
fn depends(symbols: &str) -> Result<String, String> {
    let mut packages = Vec::new();
    for line in symbols.lines().filter(|line| line.contains("(NEEDED)")) {
        let library = line
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'))
            .map_or("", |(name, _)| name);
        let package = match library {
            "libgcc_s.so.1" => "libgcc-s1 (>= 4.2)".to_owned(),
            name if is_of_libc(name) => {
                let (major, minor) = newest_glibc(symbols)
                    .ok_or("the program names no version of the C library".to_owned())?;
                format!("libc6 (>= {major}.{minor})")
            }
            other => return Err(format!("no Debian package is known for `{other}`")),
        };
        if !packages.contains(&package) {
            packages.push(package);
        }
    }
    packages.sort();
    Ok(packages.join(", "))
}

/// Whether a library comes with the package `libc6`.
fn is_of_libc(library: &str) -> bool {
    [
        "libc.so.",
        "libm.so.",
        "libdl.so.",
        "libpthread.so.",
        "librt.so.",
        "ld-linux",
    ]
    .iter()
    .any(|start| library.starts_with(start))
}

/// The newest `GLIBC_MAJOR.MINOR` in a text.
fn newest_glibc(symbols: &str) -> Option<(u32, u32)> {
    symbols
        .split("GLIBC_")
        .skip(1)
        .filter_map(|rest| {
            let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit());
            let mut parts = rest.get(..end.unwrap_or(rest.len()))?.split('.');
            Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
        })
        .max()
}

/// `DEBIAN/control`.
fn control(version: &str, architecture: &str, kib: u64, depends: &str) -> String {
    format!(
        "Package: crosstalk\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: {MAINTAINER}\n\
         Installed-Size: {kib}\n\
         Depends: {depends}\n\
         Recommends: ca-certificates\n\
         Section: net\n\
         Priority: optional\n\
         Description: signed messages between AI assistants and people\n \
         Crosstalk wraps each message between AI assistants and people in a text\n \
         envelope that can be read, copied, repaired, signed and checked.\n \
         .\n \
         The program implements the AI Crosstalk Protocol v1.1: threads, polls,\n \
         escalation, consent and an audit log. It is also the relay that lets agents\n \
         reach each other directly. The relay is not started by this package.\n"
    )
}

/// The size of all files in KiB, each rounded up, as `Installed-Size` counts.
fn installed_kib(path: &Path) -> io::Result<u64> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        return Ok(metadata.len().div_ceil(1024));
    }
    let mut sum = 1;
    for entry in fs::read_dir(path)? {
        sum += installed_kib(&entry?.path())?;
    }
    Ok(sum)
}

/// `DEBIAN/md5sums`, by which `dpkg --verify` finds changed files.
fn checksums(tree: &Path) -> Result<String, Failure> {
    let mut paths = Vec::new();
    let mut folders = vec![tree.join("usr")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            match path.is_dir() {
                true => folders.push(path),
                false => paths.push(path),
            }
        }
    }
    paths.sort();
    let mut command = Invocation::new("md5sum --");
    for path in &paths {
        command = command.arg(path.strip_prefix(tree).unwrap_or(path));
    }
    command.output(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "
 0x0000000000000001 (NEEDED)             Shared library: [libgcc_s.so.1]
 0x0000000000000001 (NEEDED)             Shared library: [libm.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [ld-linux-x86-64.so.2]
  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 8
  0x0020:   Name: GLIBC_2.34  Flags: none  Version: 7
  0x0030:   Name: GLIBC_2.2.5  Flags: none  Version: 6
  0x0040:   Name: GCC_3.0  Flags: none  Version: 5
";

    #[test]
    fn newest_symbol_decides_the_version_of_libc() {
        assert_eq!(
            depends(SYMBOLS).unwrap(),
            "libc6 (>= 2.34), libgcc-s1 (>= 4.2)"
        );
    }

    #[test]
    fn unknown_library_fails_the_package() {
        let symbols = SYMBOLS.replace("libm.so.6", "libssl.so.3");
        assert!(depends(&symbols).unwrap_err().contains("libssl.so.3"));
        assert!(depends("(NEEDED) [libc.so.6]").is_err());
    }

    #[test]
    fn control_file_has_every_field() {
        let text = control("0.1.0", "amd64", 42, "libc6 (>= 2.34)");
        let fields: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with(' '))
            .map(|line| line.split_once(": ").unwrap().0)
            .collect();
        let wanted = "Package Version Architecture Maintainer Installed-Size Depends Recommends Section Priority Description";
        assert_eq!(fields.join(" "), wanted);
        assert!(text.contains("Installed-Size: 42\n"));
        // The long description: indented by one space, with a point for an empty line, and not too wide.
        let long: Vec<&str> = text.lines().filter(|line| line.starts_with(' ')).collect();
        assert!(long.len() > 4 && long.contains(&" ."));
        assert!(
            long.iter()
                .all(|line| line.len() <= 80 && !line.starts_with("  "))
        );
        assert!(text.ends_with('\n'));
    }

    #[test]
    fn packaged_unit_runs_the_installed_program() {
        let unit = include_str!("../../../deploy/crosstalk.service");
        let packaged = packaged_unit(unit);
        assert!(unit.contains("ExecStart=/usr/local/bin/crosstalk serve"));
        assert!(packaged.contains("\nExecStart=/usr/bin/crosstalk serve"));
        assert!(!packaged.contains("/usr/local") && !packaged.contains("useradd"));
        assert!(packaged.contains("\n[Install]\n"));
    }

    #[test]
    fn debian_names_of_targets() {
        assert_eq!(architecture("x86_64-unknown-linux-gnu"), Some("amd64"));
        assert_eq!(architecture("x86_64-unknown-linux-musl"), None);
    }
}
