//! Server-sent events: from bytes as they come off the wire, cut anywhere, to the data of whole events. Knows nothing
//! of what the data means. Only `data` is kept: names, ids and retry times have no use for us.

/// A line or an event is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Puts events together. A line ends with CR, LF or both; an event ends with an empty line.
#[derive(Debug)]
pub(crate) struct Decoder {
    limit: usize,
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    begun: bool,
}

impl Decoder {
    /// A decoder that takes lines and events of up to `limit` bytes.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { limit, line: Vec::new(), data: Vec::new(), has_data: false, after_cr: false, begun: false }
    }

    /// Takes the next bytes and returns the data of the events they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut events = Vec::new();
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + part.len() > self.limit {
                return Err(TooLong);
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { break };
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            events.extend(self.end_line()?);
        }
        Ok(events)
    }

    /// The stream has ended. Servers forget the empty line after the last event, so what is there counts as one;
    /// whether it is whole is for its reader to see.
    pub(crate) fn finish(mut self) -> Result<Option<Vec<u8>>, TooLong> {
        if !self.line.is_empty() {
            self.end_line()?;
        }
        Ok(self.has_data.then_some(self.data))
    }

    fn end_line(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        let line = std::mem::take(&mut self.line);
        let marked = if self.begun { None } else { line.strip_prefix(b"\xef\xbb\xbf") };
        let line = marked.unwrap_or(&line);
        self.begun = true;
        if line.is_empty() {
            let whole = std::mem::take(&mut self.has_data).then(|| std::mem::take(&mut self.data));
            return Ok(whole);
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        if field == b"data" {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            if self.data.len() + value.len() >= self.limit {
                return Err(TooLong);
            }
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
            self.has_data = true;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = Decoder::new(100);
        let mut events: Vec<_> = pieces.iter().flat_map(|piece| decoder.push(piece).unwrap()).collect();
        events.extend(decoder.finish().unwrap());
        events.into_iter().map(|event| String::from_utf8(event).unwrap()).collect()
    }

    #[test]
    fn events_end_with_an_empty_line_whatever_ends_the_lines() {
        for ending in ["\n", "\r\n", "\r"] {
            let text = "\u{feff}: hi\nevent: x\ndata: one\ndata:two\n\nid\n\n\ndata: \u{e4}\n\ndata\n\ndata: last";
            let text = text.replace('\n', ending);
            assert_eq!(decode(&[text.as_bytes()]), ["one\ntwo", "ä", "", "last"]);
        }
    }

    #[test]
    fn a_line_or_an_event_that_never_ends_is_refused() {
        assert_eq!(Decoder::new(100).push(&[b'x'; 101]), Err(TooLong));
        let mut decoder = Decoder::new(100);
        assert_eq!(decoder.push(&[b'x'; 100]), Ok(vec![]));
        assert_eq!(decoder.push(b"x"), Err(TooLong));
        assert_eq!(Decoder::new(100).push("data: 0123456789\n".repeat(11).as_bytes()), Err(TooLong));
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_bytes_are_cut(
            text in "(data: |data:|: |\n|\r\n|\r|ä|x){0,30}",
            cuts in prop::collection::vec(0_usize..100, 0..6),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(decode(&pieces), decode(&[bytes]));
        }
    }
}
