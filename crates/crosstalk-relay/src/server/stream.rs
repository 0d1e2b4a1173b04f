//! An inbox as a stream of server-sent events.

use super::answer::{self, Answer, json_text};
use super::body;
use super::inbox::Reading;
use super::media::Media;
use super::pace::Pace;
use bytes::Bytes;
use crosstalk_protocol::relay::Entry;
use std::time::Duration;
use tokio::sync::mpsc;

/// How often something is said, so that everybody in between knows that the stream is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How many messages are fetched at once.
const SOME: usize = 16;
/// How much of a message is written at once.
const PART: usize = 64 << 10;

/// What an address gets, from now on.
pub(super) fn events(mut reading: Reading, pace: &Pace) -> Answer {
    let (send, body) = body::stream(pace, None);
    tokio::spawn(async move {
        // The line is open, and whoever lost it waits a little before the next attempt.
        if send
            .send(Bytes::from_static(b"retry: 2000\n: crosstalk\n\n"))
            .await
            .is_err()
        {
            return;
        }
        while !reading.site.is_closing() && !reading.site.relay.is_stopping() {
            // Without a cursor, the same messages would come again and again.
            reading.after = reading.after.or(Some(0));
            let read = tokio::select! {
                read = reading.next(SOME, HEARTBEAT) => read,
                () = send.closed() => return,
            };
            let Ok(entries) = read else {
                return;
            };
            if entries.is_empty()
                && send
                    .send(Bytes::from_static(b": still here\n\n"))
                    .await
                    .is_err()
            {
                return;
            }
            for entry in &entries {
                if write(&mut reading, entry, &send).await.is_none() {
                    return;
                }
            }
        }
    });
    answer::of(Media::Events, body)
}

/// Writes a message in parts, each when there is room for it on the line: a slow reader holds up nobody but itself, until
/// its connection is cut. What was withdrawn while it waited is not written; in the middle of it, the stream ends.
async fn write(reading: &mut Reading, entry: &Entry, send: &mpsc::Sender<Bytes>) -> Option<()> {
    let mut room = send.reserve().await.ok()?;
    let Some(view) = reading.again(entry).await.ok()? else {
        return Some(());
    };
    let (place, data) = (entry.record.seq, json_text(&view));
    let event = format!("event: message\nid: {place}\ndata: {data}\n\n");
    let mut event = Bytes::from(event);
    loop {
        let part = event.split_to(event.len().min(PART));
        room.send(part);
        if event.is_empty() {
            break;
        }
        room = send.reserve().await.ok()?;
        if !reading.stands(entry).await.ok()? {
            return None;
        }
    }
    reading.handed_out(std::slice::from_ref(entry));
    Some(())
}
