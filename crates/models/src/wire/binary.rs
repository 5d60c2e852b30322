//! The binary framing of Amazon's event streams: lengths, headers, payload and two checksums. A frame counts only when both
//! checksums hold.

use super::frame::{BadFrame, Frame};

/// Bytes of the two lengths and their checksum.
const PRELUDE: usize = 12;
/// Bytes of the checksum at the end.
const CHECKSUM: usize = 4;
/// The kind of header value that is a text.
const TEXT: u8 = 7;

/// Puts frames together.
#[derive(Debug)]
pub(crate) struct Decoder {
    limit: usize,
    bytes: Vec<u8>,
}

impl Decoder {
    /// A decoder that takes frames of up to `limit` bytes.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { limit, bytes: Vec::new() }
    }

    /// Takes the next bytes and returns the frames they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, BadFrame> {
        self.bytes.extend_from_slice(bytes);
        let mut frames = Vec::new();
        let mut at = 0;
        while let Some(length) = frame_length(&self.bytes[at..], self.limit)? {
            let Some(frame) = self.bytes.get(at..at + length) else { break };
            frames.push(read(frame)?);
            at += length;
        }
        self.bytes.drain(..at);
        Ok(frames)
    }
}

/// The length of the frame that begins here, once its prelude is there and right.
fn frame_length(bytes: &[u8], limit: usize) -> Result<Option<usize>, BadFrame> {
    let Some(prelude) = bytes.get(..PRELUDE) else { return Ok(None) };
    let length = number(prelude, 0) as usize;
    if crc32(&prelude[..8]) != number(prelude, 8) || length < PRELUDE + CHECKSUM {
        return Err(BadFrame::Damaged);
    }
    if length > limit {
        return Err(BadFrame::TooLong);
    }
    Ok(Some(length))
}

fn read(frame: &[u8]) -> Result<Frame, BadFrame> {
    let end = frame.len() - CHECKSUM;
    let headers_end = PRELUDE + number(frame, 4) as usize;
    if crc32(&frame[..end]) != number(frame, end) || headers_end > end {
        return Err(BadFrame::Damaged);
    }
    let kind = kind(&frame[PRELUDE..headers_end]).ok_or(BadFrame::Damaged)?;
    Ok(Frame { kind, data: frame[headers_end..end].to_vec() })
}

/// What a frame is: the name of its event, or of the exception it reports, which is told apart by a `!` before it.
fn kind(mut headers: &[u8]) -> Option<String> {
    let (mut event, mut exception) = (None, None);
    while !headers.is_empty() {
        let (name, rest) = split(headers, 1)?;
        let (kind, rest) = rest.split_first()?;
        let (value, rest) = match kind {
            0 | 1 => (&[][..], rest),
            2 => rest.split_at_checked(1)?,
            3 => rest.split_at_checked(2)?,
            4 => rest.split_at_checked(4)?,
            5 | 8 => rest.split_at_checked(8)?,
            6 | 7 => split(rest, 2)?,
            9 => rest.split_at_checked(16)?,
            _ => return None,
        };
        if *kind == TEXT {
            let value = std::str::from_utf8(value).ok()?;
            match name {
                b":event-type" => event = Some(value.to_owned()),
                b":exception-type" | b":error-code" => exception = Some(format!("!{value}")),
                _ => {}
            }
        }
        headers = rest;
    }
    Some(exception.or(event).unwrap_or_default())
}

/// A value behind its length of `width` bytes, and what comes after it.
fn split(bytes: &[u8], width: usize) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(width)?;
    let length = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    rest.split_at_checked(length)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

/// The checksum of Ethernet, zip and gzip.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        let mut sum = sum ^ u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
        }
        sum
    };
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame as a server writes it.
    pub(crate) fn encode(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
        let mut written = Vec::new();
        for (name, value) in headers {
            written.push(u8::try_from(name.len()).unwrap());
            written.extend_from_slice(name.as_bytes());
            written.push(TEXT);
            written.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
            written.extend_from_slice(value.as_bytes());
        }
        let total = PRELUDE + written.len() + payload.len() + CHECKSUM;
        let mut frame = u32::try_from(total).unwrap().to_be_bytes().to_vec();
        frame.extend_from_slice(&u32::try_from(written.len()).unwrap().to_be_bytes());
        frame.extend_from_slice(&crc32(&frame).to_be_bytes());
        frame.extend_from_slice(&written);
        frame.extend_from_slice(payload);
        frame.extend_from_slice(&crc32(&frame).to_be_bytes());
        frame
    }

    #[test]
    fn the_checksum_is_the_one_everybody_means() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_frame_without_headers_and_payload_is_the_known_sixteen_bytes() {
        let known = [0, 0, 0, 16, 0, 0, 0, 0, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff];
        assert_eq!(encode(&[], b""), known);
        assert_eq!(Decoder::new(100).push(&known).unwrap(), [Frame::default()]);
    }

    #[test]
    fn damaged_and_endless_frames_are_refused() {
        let good = encode(&[(":event-type", "metadata")], b"{}");
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(Decoder::new(1000).push(&bad).is_err(), "byte {at}");
        }
        assert_eq!(Decoder::new(20).push(&good), Err(BadFrame::TooLong));
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_bytes_are_cut(cut in 0_usize..80, more in 0_usize..80) {
            let mut bytes = encode(&[(":message-type", "event"), (":event-type", "a")], b"{\"x\":1}");
            bytes.extend(encode(&[(":exception-type", "b")], b""));
            let (first, rest) = bytes.split_at(cut.min(bytes.len()));
            let (second, third) = rest.split_at(more.min(rest.len()));
            let mut decoder = Decoder::new(1000);
            let frames: Vec<_> = [first, second, third].iter().flat_map(|piece| decoder.push(piece).unwrap()).collect();
            let kinds: Vec<_> = frames.iter().map(|frame| frame.kind.as_str()).collect();
            prop_assert_eq!(kinds, ["a", "!b"]);
        }

        #[test]
        fn any_bytes_are_frames_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Decoder::new(100).push(&bytes);
            let _ = kind(&bytes);
        }
    }
}
