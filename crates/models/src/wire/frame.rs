//! From the bytes of a response, cut anywhere, to whole frames, in each of the ways protocols cut a stream.

use super::binary;
use super::sse;

/// One message of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Frame {
    /// What kind it is, where the framing and not the data says so.
    pub(crate) kind: String,
    /// Its data.
    pub(crate) data: Vec<u8>,
}

impl From<Vec<u8>> for Frame {
    fn from(data: Vec<u8>) -> Self {
        Self { kind: String::new(), data }
    }
}

/// Why bytes are no frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadFrame {
    /// A frame is longer than it may be.
    TooLong,
    /// The bytes are damaged.
    Damaged,
}

/// How a stream is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON document per line.
    Lines,
    /// Binary frames with checksums.
    Binary,
}

/// Puts frames together.
#[derive(Debug)]
pub(crate) enum Decoder {
    Events(sse::Decoder),
    Lines { line: Vec<u8>, limit: usize },
    Binary(binary::Decoder),
}

impl Decoder {
    /// A decoder that takes frames of up to `limit` bytes.
    pub(crate) const fn new(framing: Framing, limit: usize) -> Self {
        match framing {
            Framing::Events => Self::Events(sse::Decoder::new(limit)),
            Framing::Lines => Self::Lines { line: Vec::new(), limit },
            Framing::Binary => Self::Binary(binary::Decoder::new(limit)),
        }
    }

    /// Takes the next bytes and returns the frames they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, BadFrame> {
        match self {
            Self::Events(decoder) => {
                let events = decoder.push(bytes).map_err(|sse::TooLong| BadFrame::TooLong)?;
                Ok(events.into_iter().map(Frame::from).collect())
            }
            Self::Lines { line, limit } => split_lines(line, *limit, bytes),
            Self::Binary(decoder) => decoder.push(bytes),
        }
    }

    /// The stream has ended; what is left counts as a frame where a protocol may forget the last mark.
    pub(crate) fn finish(self) -> Result<Option<Frame>, BadFrame> {
        match self {
            Self::Events(decoder) => {
                let last = decoder.finish().map_err(|sse::TooLong| BadFrame::TooLong)?;
                Ok(last.map(Frame::from))
            }
            Self::Lines { line, .. } => Ok((!line.trim_ascii().is_empty()).then(|| Frame::from(line))),
            // A frame with half its bytes is never whole.
            Self::Binary(_) => Ok(None),
        }
    }
}

fn split_lines(line: &mut Vec<u8>, limit: usize, mut bytes: &[u8]) -> Result<Vec<Frame>, BadFrame> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        if line.len() + part.len() > limit {
            return Err(BadFrame::TooLong);
        }
        line.extend_from_slice(part);
        let Some(end) = end else { break };
        bytes = &bytes[end + 1..];
        let whole = std::mem::take(line);
        if !whole.trim_ascii().is_empty() {
            frames.push(Frame::from(whole));
        }
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_their_ends_and_have_one() {
        let mut decoder = Decoder::new(Framing::Lines, 8);
        let read = |frames: Vec<Frame>| frames.into_iter().map(|frame| frame.data).collect::<Vec<_>>();
        assert_eq!(read(decoder.push(b"{\"a\"").unwrap()), Vec::<Vec<u8>>::new());
        assert_eq!(read(decoder.push(b":1}\r\n\n{}\n{").unwrap()), [b"{\"a\":1}\r".to_vec(), b"{}".to_vec()]);
        assert_eq!(decoder.finish().unwrap().unwrap().data, b"{");
        assert_eq!(Decoder::new(Framing::Lines, 8).push(b"123456789"), Err(BadFrame::TooLong));
    }
}
