//! File descriptors: each connection needs one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of this process as far as it may. How many there may be; nothing if there is no limit.
pub(super) fn raise() -> Option<usize> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let now = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => wanted,
        Err(error) => {
            tracing::warn!(reason = %error, "the limit of open files stays as it is");
            limit
        }
    };
    now.current.and_then(|n| usize::try_from(n).ok())
}

/// How many connections fit: files, attachments that come in and the ways to others need some descriptors, too.
pub(super) fn connections(wanted: usize, descriptors: Option<usize>) -> usize {
    let most = descriptors.map_or(wanted, |n| n - n / 4);
    if most < wanted {
        tracing::warn!(
            wanted,
            most,
            "fewer connections than configured: too few files may be open"
        );
    }
    wanted.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_it_may() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        let current = maximum.map_or(Some(4096), |n| Some(n - 1));
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
        let most = raise();
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
        assert_eq!(most, maximum.map(|n| n.try_into().unwrap()));
    }

    #[test]
    fn there_are_never_more_connections_than_descriptors() {
        assert_eq!(connections(4096, None), 4096);
        assert_eq!(connections(4096, Some(20_000)), 4096);
        assert_eq!(connections(4096, Some(1024)), 768);
    }
}
