//! The case files: those that are part of the program, or those of a folder.

use crate::case::CaseFile;
use crate::level::{Levels, SpecLevel};
use std::borrow::Cow;
use std::path::Path;
use std::{fs, io};

/// The files of `conformance/`, packed by `build.rs`: id, LF, number of bytes, LF, content.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cases"));
const LEVELS: &str = include_str!(concat!(env!("OUT_DIR"), "/levels.toml"));
/// The largest case file; large inputs are written as repetitions.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A case file that is read when its turn comes: some describe inputs of 64 MiB.
#[derive(Clone, Debug)]
pub struct CaseSource {
    /// The folder and the name: `env/arrow-ascii`.
    pub id: String,
    /// Its level.
    pub level: SpecLevel,
    /// The rule that it is about.
    pub rule: String,
    /// The behaviour that it shows, in one sentence.
    pub about: String,
    /// The optional area that the case belongs to, if any.
    pub optional: Option<String>,
    content: Cow<'static, [u8]>,
}

impl CaseSource {
    fn new(id: String, content: Cow<'static, [u8]>, levels: &Levels) -> Result<Self, String> {
        let fault = |fault: String| format!("{id}.case: {fault}");
        let head = CaseFile::parse_head(&id, &content).map_err(fault)?;
        let no_level = || fault("levels.toml gives its rule, op or reading no level".into());
        let level = levels.of_case(&head).ok_or_else(no_level)?;
        Ok(Self {
            level,
            rule: head.rule().to_owned(),
            about: head.about().to_owned(),
            optional: levels.optional(head.rule()).map(str::to_owned),
            id,
            content,
        })
    }

    /// Reads the case.
    ///
    /// # Errors
    /// The fault, with the name of the file.
    pub fn read(&self) -> Result<CaseFile, String> {
        CaseFile::parse(&self.id, &self.content)
            .map_err(|fault| format!("{}.case: {fault}", self.id))
    }

    /// The text of the file.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.content)
    }
}

/// The cases, in the order of their ids.
#[derive(Clone, Debug)]
pub struct CaseSet {
    sources: Vec<CaseSource>,
}

impl CaseSet {
    /// The case files that are part of this program.
    ///
    /// ```
    /// use crosstalk_conform::{CaseSet, SpecLevel};
    /// let set = CaseSet::embedded().unwrap();
    /// assert!(set.sources().iter().filter(|c| c.level == SpecLevel::L0).count() > 400);
    /// ```
    ///
    /// # Errors
    /// The fault of a file; there is none, unless the program was built wrong.
    pub fn embedded() -> Result<Self, String> {
        let levels = Levels::parse(LEVELS)?;
        let (mut sources, mut rest) = (Vec::new(), PACKED);
        while !rest.is_empty() {
            let (id, content, behind) = unpack(rest).ok_or("the packed case files are damaged")?;
            sources.push(CaseSource::new(
                id.to_owned(),
                Cow::Borrowed(content),
                &levels,
            )?);
            rest = behind;
        }
        Ok(Self { sources })
    }

    /// The number of cases of each level, in the order of the levels.
    pub fn counts(&self) -> Vec<usize> {
        let levels = SpecLevel::ALL.iter();
        levels
            .map(|level| {
                self.sources
                    .iter()
                    .filter(|case| case.level == *level)
                    .count()
            })
            .collect()
    }

    /// The case files below a folder that is laid out as `conformance/` is. Its `levels.toml` counts; without one, the
    /// levels of this program do.
    ///
    /// # Errors
    /// The file that can't be read, or what is wrong with it.
    pub fn of_folder(folder: &Path) -> Result<Self, String> {
        let shown = |path: &Path, e: io::Error| format!("{}: {e}", path.display());
        let path = folder.join("levels.toml");
        let levels = match fs::read_to_string(&path) {
            Ok(text) => Levels::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Levels::parse(LEVELS)?,
            Err(e) => return Err(shown(&path, e)),
        };
        let mut files = Vec::new();
        for area in fs::read_dir(folder).map_err(|e| shown(folder, e))? {
            let area = area.map_err(|e| shown(folder, e))?.path();
            if !area.is_dir() {
                continue;
            }
            for file in fs::read_dir(&area).map_err(|e| shown(&area, e))? {
                let file = file.map_err(|e| shown(&area, e))?.path();
                if file.extension().is_some_and(|e| e == "case") {
                    files.push((id(&area, &file), file));
                }
            }
        }
        files.sort();
        let source = |(id, file): (String, std::path::PathBuf)| {
            let size = fs::metadata(&file).map_err(|e| shown(&file, e))?.len();
            if size > MAX_FILE_BYTES {
                return Err(format!(
                    "{}: larger than {MAX_FILE_BYTES} bytes",
                    file.display()
                ));
            }
            let content = fs::read(&file).map_err(|e| shown(&file, e))?;
            CaseSource::new(id, Cow::Owned(content), &levels)
        };
        let sources: Vec<CaseSource> = files.into_iter().map(source).collect::<Result<_, _>>()?;
        match sources.is_empty() {
            true => Err(format!(
                "{}: there is no case file (AREA/NAME.case) in this folder",
                folder.display()
            )),
            false => Ok(Self { sources }),
        }
    }

    /// All of them.
    pub fn sources(&self) -> &[CaseSource] {
        &self.sources
    }

    /// Leaves only the cases for which this holds.
    pub fn retain(&mut self, keep: impl FnMut(&CaseSource) -> bool) {
        self.sources.retain(keep);
    }
}

fn id(area: &Path, file: &Path) -> String {
    let name = |path: &Path| {
        let stem = path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    };
    format!("{}/{}", name(area), name(file))
}

/// The id and content of the first packed file, and the rest.
fn unpack(packed: &[u8]) -> Option<(&str, &[u8], &[u8])> {
    let (id, rest) = split_line(packed)?;
    let (size, rest) = split_line(rest)?;
    let (content, rest) = rest.split_at_checked(size.parse().ok()?)?;
    Some((id, content, rest))
}

fn split_line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let at = bytes.iter().position(|b| *b == b'\n')?;
    let (line, rest) = bytes.split_at_checked(at)?;
    Some((std::str::from_utf8(line).ok()?, rest.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_holds_every_case_of_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
        let told = |set: CaseSet| -> Vec<(String, SpecLevel, String)> {
            let sources = set.sources.into_iter();
            sources
                .map(|c| (c.id.clone(), c.level, c.text().into_owned()))
                .collect()
        };
        let embedded = told(CaseSet::embedded().unwrap());
        assert!(embedded.len() > 2_000);
        assert!(embedded == told(CaseSet::of_folder(&folder).unwrap()));
    }

    #[test]
    fn damaged_packs_are_noticed() {
        assert_eq!(
            unpack(b"a/b\n2\nxyrest"),
            Some(("a/b", &b"xy"[..], &b"rest"[..]))
        );
        for packed in [&b"a/b\n9\nxy"[..], b"a/b\nx\nxy", b"a/b", b"\xff\n1\nx"] {
            assert_eq!(unpack(packed), None);
        }
    }
}
