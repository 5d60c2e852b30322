//! Forms of browsers (`multipart/form-data`, RFC 7578), read from a whole body whose length is limited already.

use axum::http::{HeaderMap, header};

use super::problem::{Kind, Problem};

/// Parts of a form at the most.
const PARTS: usize = 16;
/// Bytes of the head of a part.
const HEAD_BYTES: usize = 8 * 1024;

/// One part of a form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part<'a> {
    /// The field.
    pub(super) name: String,
    /// The name of the file, where it is one.
    pub(super) file_name: Option<String>,
    pub(super) bytes: &'a [u8],
}

/// What stands between the parts, if the body is a form.
///
/// # Errors
/// 415 when it is something else.
pub(super) fn boundary(headers: &HeaderMap) -> Result<String, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (essence, rest) = kind.split_once(';').unwrap_or((kind, ""));
    let boundary = rest.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"').to_owned())
    });
    match boundary.filter(|text| essence.trim().eq_ignore_ascii_case("multipart/form-data") && is_boundary(text)) {
        Some(boundary) => Ok(boundary),
        None => Err(Problem::new(Kind::UnsupportedMediaType, "The body is not a form. Nothing was kept.")
            .hint("send Content-Type: multipart/form-data, as `curl -F file=@plan.png` does")),
    }
}

fn is_boundary(text: &str) -> bool {
    (1..=70).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

/// The parts of a form.
///
/// # Errors
/// 400 when it breaks off, or is no form.
pub(super) fn parts<'a>(boundary: &str, body: &'a [u8]) -> Result<Vec<Part<'a>>, Problem> {
    let broken = || Problem::new(Kind::Malformed, "The form cannot be read. Nothing was kept.");
    let first = format!("--{boundary}");
    let between = format!("\r\n{first}");
    // What stands before the first part means nothing.
    let start = if body.starts_with(first.as_bytes()) {
        first.len()
    } else {
        after(body, between.as_bytes()).ok_or_else(broken)?
    };
    let mut rest = &body[start..];
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        let (head, content) = cut(rest, b"\r\n\r\n").filter(|(head, _)| head.len() <= HEAD_BYTES).ok_or_else(broken)?;
        let (bytes, following) = cut(content, between.as_bytes()).ok_or_else(broken)?;
        parts.push(part(head, bytes).ok_or_else(broken)?);
        if parts.len() > PARTS {
            return Err(Problem::invalid(format!("A form has at most {PARTS} parts. Nothing was kept.")));
        }
        rest = following;
    }
    Ok(parts)
}

fn part<'a>(head: &[u8], bytes: &'a [u8]) -> Option<Part<'a>> {
    let head = std::str::from_utf8(head).ok()?;
    let said = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    Some(Part { name: parameter(said, "name")?, file_name: parameter(said, "filename"), bytes })
}

/// A parameter in quotes; browsers write a quote in it as `%22`, others with a backslash.
fn parameter(line: &str, wanted: &str) -> Option<String> {
    let mut rest = line;
    while let Some((before, value)) = rest.split_once("=\"") {
        let name = before.rsplit([';', ' ']).next()?.trim();
        let (mut text, mut letters) = (String::new(), value.char_indices());
        let end = loop {
            match letters.next()? {
                (at, '"') => break at,
                (_, '\\') => text.push(letters.next()?.1),
                (_, letter) => text.push(letter),
            }
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(text.replace("%22", "\""));
        }
        rest = &value[end + 1..];
    }
    None
}

fn after(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark).map(|at| at + mark.len())
}

/// What is before a mark, and what follows it.
fn cut<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let end = after(bytes, mark)?;
    Some((&bytes[..end - mark.len()], &bytes[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part as its name, the name of its file, and its bytes.
    type Seen = (String, Option<String>, Vec<u8>);

    fn read(body: &[u8]) -> Option<Vec<Seen>> {
        let parts = parts("x", body).ok()?;
        Some(parts.into_iter().map(|part| (part.name, part.file_name, part.bytes.to_vec())).collect())
    }

    #[test]
    fn a_form_is_read_part_by_part_whatever_they_hold() {
        let body = b"before\r\n--x\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n--x\r\n\
            content-type: image/png\r\ncontent-disposition: form-data; filename=\"a \\\"b\\\"; name=.png\"; name=\"file\"\r\n\r\n\
            \x00--x\r\n--y\r\n\r\n--x--\r\nafter";
        let file = ("file".to_owned(), Some("a \"b\"; name=.png".to_owned()), b"\x00--x\r\n--y\r\n".to_vec());
        assert_eq!(read(body), Some(vec![("note".to_owned(), None, b"hello".to_vec()), file]));
        assert_eq!(read(b"--x--"), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_whole_form_is_refused() {
        let whole = b"--x\r\ncontent-disposition: form-data; name=\"file\"\r\n\r\nhello\r\n--x--";
        assert!(read(whole).is_some());
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end]), None, "cut at {end}");
        }
        assert_eq!(read(b"--x\r\n\r\n\r\nhello\r\n--x--"), None, "a part without a name");
        let many = [
            b"--x".as_slice(),
            &b"\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n\r\n--x".repeat(PARTS + 1),
            b"--",
        ];
        assert_eq!(read(&many.concat()), None);
    }

    #[test]
    fn only_a_form_counts_as_one() {
        let of = |kind: &str| boundary(&HeaderMap::from_iter([(header::CONTENT_TYPE, kind.parse().unwrap())])).ok();
        assert_eq!(of("multipart/form-data; boundary=x").as_deref(), Some("x"));
        assert_eq!(of("Multipart/Form-Data; charset=utf-8; Boundary=\"a b\"").as_deref(), Some("a b"));
        let long = format!("multipart/form-data; boundary={}", "x".repeat(71));
        for wrong in ["application/json", "multipart/mixed; boundary=x", "multipart/form-data", "", &long] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
