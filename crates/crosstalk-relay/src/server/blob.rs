//! Attachments: files under the data folder, named by their digest; or parts in the store, where several relays share it.

use super::Server;
use super::body::{self, BodyLimits, BodyReader};
use super::media::{self, Media};
use super::response::{self, HttpError, Json, Response};
use super::router::{Call, Segment};
use crate::core::Relay;
use crate::core::access::{Access, PORTION, REFERENCES};
use axum::extract::{FromRequestParts, Request};
use bytes::{Bytes, BytesMut};
use crosstalk_api::blob::Blob;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_protocol::relay::Peer;
use crosstalk_protocol::relay::port::{
    BLOB_BYTES_LEAST, BLOB_PART_BYTES, BlobPart, HeldQuery, RelayStore, Upload,
};
use crosstalk_protocol::store::StoreError;
use http::header::{CONTENT_DISPOSITION, ETAG, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use sha2::{Digest as _, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Mutex, MutexGuard, Semaphore};

/// How many attachments are made durable at once.
const MAX_SYNCS: usize = 16;
/// After how many bytes the free space is looked at again: others write as well.
const CHECK_SPACE_BYTES: u64 = 1 << 20;
/// How much of a file is read at once.
const CHUNK_BYTES: usize = 64 << 10;
/// What the names of files begin with that are not complete.
const TEMP_PREFIX: &str = "new-";

/// Where the attachment with a digest is in a data folder, if it is there.
pub(crate) fn blob_path(data: &Path, digest: &Digest) -> PathBuf {
    path_in(&data.join(FOLDER), digest)
}

fn path_in(folder: &Path, digest: &Digest) -> PathBuf {
    let name = digest.to_string();
    let name = name.strip_prefix("sha256:").unwrap_or(&name);
    let start: String = name.chars().take(2).collect();
    folder.join(start).join(name)
}

/// The folder of the attachments in a data folder.
const FOLDER: &str = "blobs";

/// The folder of the attachments.
pub struct Blobs {
    folder: PathBuf,
    /// Held while attachments are added or removed, so that none is removed that was just added.
    changing: Mutex<()>,
    writers: Semaphore,
}

impl Blobs {
    /// Opens the folder `blobs` in a data folder, or makes it. Incomplete uploads are removed.
    ///
    /// # Errors
    /// If it can't be made or read.
    pub fn open(data: &Path) -> io::Result<Self> {
        let folder = data.join(FOLDER);
        std::fs::create_dir_all(&folder)?;
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(TEMP_PREFIX) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(Self {
            folder,
            changing: Mutex::new(()),
            writers: Semaphore::new(MAX_SYNCS),
        })
    }

    /// Where the attachment with a digest is, if it is there.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        path_in(&self.folder, digest)
    }

    /// Refuses what would leave less than so many bytes to the messages.
    async fn has_room(&self, least: u64) -> Result<(), HttpError> {
        let folder = self.folder.clone();
        let free = tokio::task::spawn_blocking(move || free_bytes(&folder)).await;
        let free = free.unwrap_or_else(|e| Err(io::Error::other(e)));
        match free.map_err(trouble)? < least {
            true => Err(HttpError::later(
                "The disk of the relay has too little space for attachments",
            )),
            false => Ok(()),
        }
    }

    /// Free bytes on the disk.
    ///
    /// # Errors
    /// If the system does not tell.
    pub(super) fn free_bytes(&self) -> io::Result<u64> {
        free_bytes(&self.folder)
    }

    /// Keeps others from adding and removing attachments.
    pub(super) async fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// Removes attachments. One that can't be removed is logged, and stays.
    pub(super) async fn remove(&self, digests: Vec<Digest>) {
        if digests.is_empty() {
            return;
        }
        let paths: Vec<PathBuf> = digests.iter().map(|digest| self.path(digest)).collect();
        let remove = move || {
            for (digest, path) in digests.iter().zip(paths) {
                if let Err(error) = std::fs::remove_file(path)
                    && error.kind() != io::ErrorKind::NotFound
                {
                    tracing::warn!(%digest, reason = %error, "an attachment can't be removed");
                }
            }
        };
        // If it panics, the files stay.
        let _ = tokio::task::spawn_blocking(remove).await;
    }
}

fn free_bytes(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// A file that is removed when it is dropped, unless it is kept.
struct TempFile {
    path: PathBuf,
    is_kept: bool,
}

impl TempFile {
    /// Gives it its name, and makes sure that it has it after a power cut.
    fn keep(mut self, to: &Path) -> io::Result<()> {
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
            std::fs::rename(&self.path, to)?;
            self.is_kept = true;
            std::fs::File::open(folder)?.sync_all()?;
            if let Some(above) = folder.parent() {
                std::fs::File::open(above)?.sync_all()?;
            }
        }
        Ok(())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let path = std::mem::take(&mut self.path);
        // If it stays, it is removed at the next start.
        let remove = move || drop(std::fs::remove_file(path));
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

pub(super) async fn put(
    call: Call,
    BlobDigest(digest): BlobDigest,
    request: Request,
) -> Result<(StatusCode, Json<Blob>), HttpError> {
    media::check_encoding(request.headers())?;
    let server = &call.server;
    let config = server.relay.config();
    let limits = &config.limits;
    let bounds = BodyLimits {
        bytes: limits.blob_bytes,
        time: Duration::from_secs(limits.body_seconds.max(1)),
    };
    let mut reader = BodyReader::new(request.into_body(), bounds)?;
    let blobs = &server.blobs;
    blobs.has_room(limits.free_bytes).await?;
    let quota = Quota {
        relay: server.relay.clone(),
        peer: Arc::clone(&call.caller.peer),
        digest,
    };
    let room = quota.room().await?;
    let name = format!("{TEMP_PREFIX}{}", crosstalk_envelope::id::new_ulid());
    let temporary = TempFile {
        path: blobs.folder.join(name),
        is_kept: false,
    };
    let mut file = File::create_new(&temporary.path).await.map_err(trouble)?;
    let (mut hash, mut size, mut looked) = (Sha256::new(), 0_u64, 0_u64);
    while let Some(part) = reader.next().await? {
        hash.update(&part);
        size += u64::try_from(part.len()).unwrap_or(0);
        if size > room {
            return Err(quota.exhausted());
        }
        if size - looked >= CHECK_SPACE_BYTES {
            blobs.has_room(limits.free_bytes).await?;
            looked = size;
        }
        file.write_all(&part).await.map_err(trouble)?;
    }
    // The credential may have been revoked while they came.
    server.check_credential(&call.caller).await?;
    let found = Digest(hash.finalize().into());
    if found != digest {
        return Err(HttpError::format(
            format!("The digest of the body is {found}, and the path says {digest}."),
            "check the file, and send it under its digest.",
        ));
    }
    // Not before all of it is here: a slow sender does not hold up others.
    let _turn = blobs.writers.acquire().await;
    file.flush().await.map_err(trouble)?;
    file.sync_all().await.map_err(trouble)?;
    drop(file);
    let to = blobs.path(&digest);
    let store = server.relay.store();
    let parts = match store.keeps_bytes() {
        true => Some(keep_parts(store, &temporary.path, server.relay.now()).await?),
        false => None,
    };
    let _changing = blobs.changing().await;
    // Others of this credential may have come meanwhile; from here on, none does.
    if size > quota.room().await? {
        return Err(quota.exhausted());
    }
    if parts.is_none() {
        let kept = tokio::task::spawn_blocking(move || temporary.keep(&to)).await;
        kept.map_err(|e| trouble(io::Error::other(e)))?
            .map_err(trouble)?;
    }
    let upload = Upload {
        digest,
        size,
        by: call.caller.peer.name.clone(),
        parts,
    };
    let at = server.relay.now();
    server.relay.store().add_blob(upload, at).await?;
    // The same response, whether the bytes were here before or not: it must not tell that others have them.
    let digest = digest.to_string();
    Ok((StatusCode::CREATED, Json(Blob { digest, size })))
}

/// Hands the bytes of a file to the store. The id of the upload.
async fn keep_parts(
    store: &dyn RelayStore,
    path: &Path,
    at: Timestamp,
) -> Result<String, HttpError> {
    let upload = crosstalk_envelope::id::new_ulid();
    let mut file = File::open(path).await.map_err(trouble)?;
    for number in 0.. {
        let mut bytes = Vec::new();
        let limit = u64::try_from(BLOB_PART_BYTES).unwrap_or(u64::MAX);
        let read = (&mut file).take(limit).read_to_end(&mut bytes).await;
        // An empty attachment has one part, too.
        if read.map_err(trouble)? == 0 && number > 0 {
            break;
        }
        let part = BlobPart {
            upload: upload.clone(),
            number,
            bytes,
        };
        store.add_part(part, at).await?;
    }
    Ok(upload)
}

/// The bytes of an attachment, as they are read.
enum BlobReader {
    File(File),
    /// The number of the next part, and the first part if it was not taken yet.
    Parts {
        next: u64,
        first: Option<Vec<u8>>,
    },
}

impl BlobReader {
    /// Opens an attachment: its bytes, and how many they are.
    async fn open(server: &Server, digest: &Digest) -> Result<Option<(Self, u64)>, HttpError> {
        if let Some(first) = server.relay.store().read_part(*digest, 0).await? {
            let reader = Self::Parts {
                next: 1,
                first: Some(first.bytes),
            };
            return Ok(Some((reader, first.size)));
        }
        match File::open(server.blobs.path(digest)).await {
            Ok(file) => {
                let size = file.metadata().await.map_err(trouble)?.len();
                Ok(Some((Self::File(file), size)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(trouble(error)),
        }
    }

    /// The next bytes; none at the end.
    async fn next(&mut self, store: &dyn RelayStore, digest: Digest) -> Result<Bytes, String> {
        match self {
            Self::File(file) => {
                let mut part = BytesMut::with_capacity(CHUNK_BYTES);
                let read = file.read_buf(&mut part).await;
                read.map_err(|error| error.to_string())?;
                Ok(part.freeze())
            }
            Self::Parts { next, first } => {
                if let Some(first) = first.take() {
                    return Ok(Bytes::from(first));
                }
                let part = store.read_part(digest, *next).await;
                *next += 1;
                let part = part.map_err(|error| error.to_string())?;
                Ok(part.map_or_else(Bytes::new, |part| Bytes::from(part.bytes)))
            }
        }
    }
}

/// How much one credential may upload besides what it has here.
struct Quota {
    relay: Relay,
    peer: Arc<Peer>,
    digest: Digest,
}

impl Quota {
    /// How many bytes an attachment may have. What this credential has of it already does not count twice.
    async fn room(&self) -> Result<u64, HttpError> {
        let quota = self.relay.config().limits.token_blob_bytes;
        if quota == 0 || self.peer.is_local {
            return Ok(u64::MAX);
        }
        let store = self.relay.store();
        let used = store.uploaded_bytes(&self.peer.name, self.digest).await?;
        let room = quota.saturating_sub(used);
        match room < BLOB_BYTES_LEAST {
            true => Err(self.exhausted()),
            false => Ok(room),
        }
    }

    fn exhausted(&self) -> HttpError {
        let quota = self.relay.config().limits.token_blob_bytes;
        HttpError::new(
            ErrorCode::TooLarge,
            format!(
                "The attachments of the credential `{}` would have more than {quota} bytes.",
                self.peer.name
            ),
            "wait until messages with older attachments are erased, or ask the relay operator for more \
                 (`token_blob_bytes`).",
        )
    }
}

pub(super) async fn get(
    call: Call,
    BlobDigest(digest): BlobDigest,
    request: Request,
) -> Result<Response, HttpError> {
    let access = BlobAccess {
        server: Arc::clone(&call.server),
        access: call.access(),
        digest,
    };
    call.server.wait_for_index().await;
    if !access.can_read().await? {
        return Err(HttpError::missing("such attachment"));
    }
    let Some((reader, size)) = BlobReader::open(&call.server, &digest).await? else {
        return Err(HttpError::missing("such attachment"));
    };
    let etag = format!("\"{digest}\"");
    let known = request.headers().get(IF_NONE_MATCH);
    let known = known.and_then(|v| v.to_str().ok());
    let is_known = known.is_some_and(|k| {
        k.split(',')
            .any(|t| t.trim().trim_start_matches("W/") == etag)
    });
    let mut answer = if is_known {
        response::empty(StatusCode::NOT_MODIFIED)
    } else {
        let (send, body) = body::stream(&call.connection.phase, Some(size));
        if request.method() != Method::HEAD {
            tokio::spawn(async move {
                let (mut reader, mut is_first) = (reader, true);
                loop {
                    let part = reader.next(access.server.relay.store(), digest).await;
                    let part = match part {
                        Ok(part) if part.is_empty() => return,
                        Ok(part) => part,
                        Err(reason) => {
                            tracing::error!(reason, "an attachment could not be read");
                            return;
                        }
                    };
                    let Ok(room) = send.reserve().await else {
                        return;
                    };
                    // The consent may have been revoked while a slow client read.
                    if !is_first && !access.can_read().await.unwrap_or(false) {
                        return;
                    }
                    is_first = false;
                    room.send(part);
                }
            });
        }
        response::with_media(Media::Bytes, body)
    };
    let headers = answer.headers_mut();
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(ETAG, etag);
    }
    Ok(answer)
}

/// The access of a caller to one attachment.
struct BlobAccess {
    server: Arc<Server>,
    access: Access,
    digest: Digest,
}

impl BlobAccess {
    /// Whether the caller may read it (HTP-051).
    async fn can_read(&self) -> Result<bool, StoreError> {
        let (server, access, digest) = (&self.server, &self.access, self.digest);
        let (store, now) = (server.relay.store(), server.relay.now());
        if access.can_read_blob(store, digest, now, REFERENCES).await? {
            return Ok(true);
        }
        // A person who decides about a held message may read its attachments.
        let limit = REFERENCES / PORTION;
        let held = store.held(HeldQuery::Referring { digest, limit }).await?;
        for held in held.iter().filter(|h| h.text(now).is_some()) {
            if server.can_read_held(access, held).await {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The digest in the path.
pub(super) struct BlobDigest(Digest);

impl FromRequestParts<Arc<Server>> for BlobDigest {
    type Rejection = HttpError;

    async fn from_request_parts(
        parts: &mut Parts,
        server: &Arc<Server>,
    ) -> Result<Self, HttpError> {
        let Segment(name) = Segment::from_request_parts(parts, server).await?;
        let digest = Digest::parse(&name).filter(|d| d.to_string() == name);
        digest.map(Self).ok_or_else(|| {
        HttpError::format(
            "The name of an attachment is not `sha256:` and 64 hexadecimal digits in lower case.",
            "use the digest of its bytes.",
        )
    })
    }
}

/// Trouble with the disk.
fn trouble(error: io::Error) -> HttpError {
    tracing::error!(reason = %error, "an attachment can't be read or written");
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            HttpError::later("The disk of the relay is full")
        }
        io::ErrorKind::FileTooLarge => HttpError::new(
            ErrorCode::TooLarge,
            "The file is too large for the disk of the relay.",
            "send a smaller one.",
        ),
        _ => HttpError::later("The disk of the relay can't be read or written"),
    }
}
