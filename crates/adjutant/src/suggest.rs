//! "Did you mean": the known word that is nearest to a misspelt one. Pure.

/// The nearest of the known words, if it is near enough to be what was meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let wanted = plain(word);
    // A word of two letters is near to everything.
    let most = match wanted.chars().count() {
        0..=2 => 0,
        letters => (letters / 3).max(1),
    };
    let scored = known.into_iter().map(|candidate| (distance(&wanted, &plain(candidate)), candidate));
    scored.filter(|(far, _)| *far <= most).min_by_key(|(far, _)| *far).map(|(_, candidate)| candidate)
}

/// The end of a sentence about an unknown word: the word that was meant, or all there are.
pub(crate) fn advice(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("known are {}", known.join(", ")),
    }
}

/// What serde says about an unknown field or variant, with the word that was meant; any other text stays as it is.
pub(crate) fn better(message: &str) -> String {
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match (message.strip_prefix("unknown "), words.as_slice()) {
        (Some(rest), [unknown, known @ ..]) if !known.is_empty() => {
            let what = rest.split(' ').next().unwrap_or("word").replace("variant", "value");
            format!("unknown {what} `{unknown}`, {}", advice(unknown, known))
        }
        _ => message.to_owned(),
    }
}

/// Edits (insert, delete, replace, swap of neighbours) between two words.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(a != b);
            let mut best = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_meant_and_a_far_one_is_not() {
        let known = ["model", "max_turns", "description", "tools"];
        assert_eq!(nearest("modle", known), Some("model"));
        assert_eq!(nearest("max-turn", known), Some("max_turns"));
        assert_eq!(nearest("Descripton", known), Some("description"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(advice("tool", &known), "did you mean `tools`?");
        assert_eq!(advice("colour", &["a", "b"]), "known are a, b");
    }

    #[test]
    fn what_serde_says_gains_the_word_that_was_meant() {
        assert_eq!(
            better("unknown field `folder`, expected one of `notebooks`, `folders`"),
            "unknown field `folder`, did you mean `folders`?"
        );
        assert_eq!(
            better("unknown variant `lo`, expected one of `none`, `low`, `high`"),
            "unknown value `lo`, known are none, low, high"
        );
        assert_eq!(better("invalid type: `x`"), "invalid type: `x`");
    }

    #[test]
    fn neighbours_that_changed_places_count_as_one_edit() {
        assert_eq!(distance("modle", "model"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
