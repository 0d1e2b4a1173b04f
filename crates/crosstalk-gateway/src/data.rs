//! The bytes of a mail as they come after DATA, without the dots that the client added.
//!
//! Servers that disagree about where a mail ends can be made to see a second mail in the text of the first (SMTP smuggling).
//! Here `CRLF . CRLF` ends a mail and nothing else does, and a mail with a CR or a LF alone is refused as a whole (MAI-074).

/// The fault of a mail so far. The server reads the mail to its end nevertheless: the bytes after a fault are no commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFault {
    /// It has more bytes than a mail may have.
    TooLarge,
    /// It has a CR or a LF alone.
    BareLineEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataPlace {
    LineStart,
    /// After a dot at the beginning of a line.
    Dot,
    /// After the CR behind that.
    DotCr,
    Line,
    Cr,
}

/// Reads a mail byte by byte.
#[derive(Debug)]
pub struct DataReader {
    place: DataPlace,
    mail: Vec<u8>,
    limit: usize,
    /// All bytes that came, also those that are not kept.
    seen: usize,
    fault: Option<DataFault>,
}

impl DataReader {
    /// Reads a mail with at most so many bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            place: DataPlace::LineStart,
            mail: Vec::new(),
            limit,
            seen: 0,
            fault: None,
        }
    }

    /// Reads bytes up to the end of the mail: how many there were if that came.
    ///
    /// ```
    /// use crosstalk_gateway::data::{DataFault, DataReader};
    /// let mut reader = DataReader::new(100);
    /// assert_eq!(reader.read(b"a\r\n..b\r\n.\r\nQUIT"), Some(11));
    /// assert_eq!(reader.finish(), Ok(b"a\r\n.b\r\n".to_vec()));
    /// let mut smuggled = DataReader::new(100);
    /// assert_eq!(smuggled.read(b"a\n.\r\nMAIL FROM:<x@y>\r\n.\r\n"), Some(25));
    /// assert_eq!(smuggled.finish(), Err(DataFault::BareLineEnd));
    /// ```
    pub fn read(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            self.seen = self.seen.saturating_add(1);
            self.place = match (self.place, *byte) {
                (DataPlace::LineStart, b'.') => DataPlace::Dot,
                (DataPlace::Dot, b'\r') => DataPlace::DotCr,
                (DataPlace::DotCr, b'\n') => return Some(at + 1),
                (DataPlace::DotCr, byte) => {
                    // The CR stood alone: the line goes on.
                    self.fail(DataFault::BareLineEnd);
                    self.next(byte)
                }
                (DataPlace::Cr, b'\n') => {
                    self.push(b'\n');
                    DataPlace::LineStart
                }
                (DataPlace::Cr, byte) => {
                    self.fail(DataFault::BareLineEnd);
                    self.next(byte)
                }
                // The dot that the client added is gone.
                (DataPlace::LineStart | DataPlace::Dot | DataPlace::Line, byte) => self.next(byte),
            };
        }
        None
    }

    fn next(&mut self, byte: u8) -> DataPlace {
        match byte {
            b'\r' => {
                self.push(byte);
                DataPlace::Cr
            }
            b'\n' => {
                self.fail(DataFault::BareLineEnd);
                DataPlace::Line
            }
            byte => {
                self.push(byte);
                DataPlace::Line
            }
        }
    }

    fn push(&mut self, byte: u8) {
        if self.fault.is_some() {
            return;
        }
        if self.mail.len() == self.limit {
            self.fail(DataFault::TooLarge);
            return;
        }
        self.mail.push(byte);
    }

    fn fail(&mut self, fault: DataFault) {
        self.fault.get_or_insert(fault);
        self.mail = Vec::new();
    }

    /// Whether so much came that the rest is not worth waiting for.
    pub fn is_endless(&self) -> bool {
        self.seen > self.limit.saturating_mul(2).saturating_add(1 << 16)
    }

    /// The mail.
    ///
    /// # Errors
    /// Its fault.
    pub fn finish(self) -> Result<Vec<u8>, DataFault> {
        match self.fault {
            None => Ok(self.mail),
            Some(fault) => Err(fault),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way of writing the end of a mail that some server took for one.
    #[test]
    fn nothing_but_a_dot_between_two_full_line_ends_ends_a_mail() {
        let ends: [&[u8]; 4] = [b"\r\n", b"\n", b"\r", b"\0\r\n"];
        for before in ends {
            for after in ends {
                let mut bytes = b"a".to_vec();
                bytes.extend_from_slice(before);
                bytes.push(b'.');
                bytes.extend_from_slice(after);
                let is_end = before.ends_with(b"\r\n") && after == b"\r\n";
                let mut reader = DataReader::new(1000);
                let ended = reader.read(&bytes);
                assert_eq!(ended.is_some(), is_end, "{bytes:?}");
                if !is_end {
                    bytes = b"MAIL FROM:<x@y>\r\n.\r\n".to_vec();
                    assert_eq!(
                        reader.read(&bytes),
                        Some(bytes.len()),
                        "{before:?} {after:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn bytes_may_come_one_by_one() {
        let whole = b".\r\r\n..x\r\n.y\r\n\r\n.\r\n";
        let mut reader = DataReader::new(100);
        let ends: Vec<usize> = (0..whole.len())
            .filter(|at| reader.read(&whole[*at..=*at]).is_some())
            .collect();
        assert_eq!(ends, [whole.len() - 1]);
        assert_eq!(reader.finish(), Err(DataFault::BareLineEnd));
    }

    #[test]
    fn limit_counts_the_bytes_of_the_mail() {
        for (limit, fits) in [(4, true), (3, false)] {
            let mut reader = DataReader::new(limit);
            assert!(reader.read(b"..b\r\n.\r\n").is_some());
            assert_eq!(reader.finish().is_ok(), fits, "{limit}");
        }
        let mut reader = DataReader::new(1);
        assert_eq!(reader.read(&vec![b'a'; 70_000]), None);
        assert!(reader.is_endless());
    }
}
