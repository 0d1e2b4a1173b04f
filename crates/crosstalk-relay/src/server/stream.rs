//! An inbox as a stream of server-sent events.

use super::answer::{self, Answer, json_text};
use super::body::Body;
use super::inbox::Reading;
use super::media::Media;
use super::pace::Pace;
use bytes::Bytes;
use std::time::Duration;

/// How often something is said, so that everybody in between knows that the stream is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How many messages are fetched at once.
const SOME: usize = 16;

/// What an address gets, from now on.
pub(super) fn events(mut reading: Reading, pace: &Pace) -> Answer {
    let (send, body) = Body::stream(pace, None);
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
            reading.handed_out(&entries);
            for entry in &entries {
                let Ok(view) = reading.view(entry).await else {
                    return;
                };
                let (place, data) = (entry.record.seq, json_text(&view));
                let event = format!("event: message\nid: {place}\ndata: {data}\n\n");
                // A slow reader holds up nobody but itself, until its connection is cut.
                if send.send(event.into()).await.is_err() {
                    return;
                }
            }
        }
    });
    answer::of(Media::Events, body)
}
