//! Texts with `${…}` in them: read once when the script is loaded, filled in for each answer.

use crate::view::View;

/// What can be inserted.
pub(super) struct Values<'a> {
    /// The request.
    pub(super) view: &'a View<'a>,
    /// What the rule's expression found, the whole first.
    pub(super) found: &'a [String],
}

/// A text with gaps.
#[derive(Debug, Clone, Default)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    User,
    Turn,
    LastResult,
    Result(String),
    Found(usize),
}

impl Template {
    /// Reads a text; the error names what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            if let Some(before) = rest[..at].strip_suffix('$') {
                plain.push_str(before);
                plain.push_str("${");
                rest = &rest[at + 2..];
                continue;
            }
            plain.push_str(&rest[..at]);
            let (name, after) =
                rest[at + 2..].split_once('}').ok_or("`${` without `}` (write `$${` for the text itself)")?;
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
            pieces.push(Piece::named(name)?);
            rest = after;
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Ok(Self(pieces))
    }

    /// The highest number of what an expression has to find for this text.
    pub(super) fn highest_found(&self) -> Option<usize> {
        let numbers = self.0.iter().filter_map(|piece| match piece {
            Piece::Found(number) => Some(*number),
            Piece::Text(_) | Piece::User | Piece::Turn | Piece::LastResult | Piece::Result(_) => None,
        });
        numbers.max()
    }

    /// The text with its gaps filled; what is not there is empty.
    pub(super) fn fill(&self, values: &Values<'_>) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::User => text.push_str(&values.view.user),
                Piece::Turn => text.push_str(&values.view.turn.to_string()),
                Piece::LastResult => text.push_str(&values.view.newest_result(None).unwrap_or_default()),
                Piece::Result(tool) => text.push_str(&values.view.newest_result(Some(tool)).unwrap_or_default()),
                Piece::Found(number) => text.push_str(values.found.get(*number).map_or("", String::as_str)),
            }
        }
        text
    }
}

impl Piece {
    fn named(name: &str) -> Result<Self, String> {
        if let Some(tool) = name.strip_prefix("result:") {
            return Ok(Self::Result(tool.to_owned()));
        }
        match name {
            "user" => Ok(Self::User),
            "turn" => Ok(Self::Turn),
            "last_result" => Ok(Self::LastResult),
            number if !number.is_empty() && number.len() <= 2 && number.bytes().all(|byte| byte.is_ascii_digit()) => {
                number.parse().map(Self::Found).map_err(|_| format!("`${{{number}}}` is not a number"))
            }
            other => Err(format!(
                "`${{{other}}}` is not known; there are user, turn, last_result, result:NAME and the numbers of `matches`"
            )),
        }
    }
}
