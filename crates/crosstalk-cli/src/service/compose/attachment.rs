//! Files beside a message: their kind, name and digest (MET-012).

use crate::failure::Failure;
use crate::service::relay::send::Attached;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{ErrorCode, base64, limit};
use std::path::Path;

/// The largest file that is attached.
const MOST: u64 = 256 << 20;
/// The bytes that still fit on one line with their name and digest, in base64.
const MOST_EMBEDDED: usize = 44 * 1024;

/// The value of an attachment: `text/plain;name=plan.txt;digest=sha256:…`, with the bytes if they are to be embedded; and
/// the file.
pub(super) fn describe(path: &Path, embed: bool) -> Result<(String, Attached), Failure> {
    let shown = path.to_string_lossy().into_owned();
    let facts = std::fs::metadata(path).map_err(|e| Failure::at(path, e))?;
    if !facts.is_file() || facts.len() > MOST {
        let why = format!(
            "{shown} can't be attached: only files of at most {} MiB can",
            MOST >> 20
        );
        return Err(Failure::refused(ErrorCode::TooLarge, why));
    }
    let bytes = std::fs::read(path).map_err(|e| Failure::at(path, e))?;
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
    let name: String = name.unwrap_or_default();
    let is_plain =
        |c: char| !c.is_control() && c != ';' && !crosstalk_envelope::unicode::is_hidden(c);
    let name: String = name.chars().filter(|c| is_plain(*c)).collect();
    let digest = Digest::of(&bytes);
    let mut value = format!("{};name={name};digest={digest}", kind(path));
    if embed {
        if bytes.len() > MOST_EMBEDDED {
            return Err(Failure::refused(
                ErrorCode::TooLarge,
                format!(
                    "{shown} has {} bytes, and at most {MOST_EMBEDDED} fit on a line of {}",
                    bytes.len(),
                    limit::LINE_BYTES
                ),
            )
            .help(
                "attach it without --embed, \
                     and send the file beside the message",
            ));
        }
        value.push_str(&format!(";data=base64,{}", base64::encode(&bytes)));
    }
    let attached = Attached {
        path: path.to_owned(),
        digest,
    };
    Ok((value, attached))
}

/// The media type, by the ending of the name.
fn kind(path: &Path) -> &'static str {
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    match ending.as_deref().unwrap_or("") {
        "txt" | "log" | "crosstalk" | "aict" => "text/plain",
        "md" | "markdown" => "text/markdown",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "js" | "mjs" => "text/javascript",
        "json" => "application/json",
        "toml" => "application/toml",
        "yaml" | "yml" => "application/yaml",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "webp" => "image/webp",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "rs" | "py" | "go" | "c" | "h" | "cpp" | "java" | "ts" | "sh" | "sql" | "diff"
        | "patch" => "text/plain",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstalk_envelope::meta::Attachment;

    #[test]
    fn written_attachment_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a;b \u{202e}plan.MD");
        std::fs::write(&path, "hello").unwrap();
        let (value, attached) = describe(&path, true).unwrap();
        assert_eq!(attached.digest, Digest::of(b"hello"));
        let read = Attachment::parse(&value).unwrap();
        assert_eq!(
            (read.mime, read.name),
            ("text/markdown", Some("ab plan.MD"))
        );
        assert_eq!(read.check(b"hello"), Ok(()));
        assert_eq!(read.check_embedded(), Ok(()));
        std::fs::write(&path, vec![0; MOST_EMBEDDED + 1]).unwrap();
        assert!(describe(&path, true).is_err() && describe(&path, false).is_ok());
    }
}
