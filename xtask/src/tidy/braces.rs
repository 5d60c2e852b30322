//! Spells out `a/{b,c}`: used for paths in documents and for grouped `use` lines.

/// Every text that a text with braces stands for; a text without a matching pair stands for itself.
pub(super) fn expand(text: &str) -> Vec<String> {
    let Some((before, choices, after)) = first_group(text) else {
        return vec![text.to_owned()];
    };
    choices.iter().flat_map(|choice| expand(&format!("{before}{}{after}", choice.trim()))).collect()
}

/// Splits at the first outermost pair of braces and at its own commas, leaving inner pairs whole.
fn first_group(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    let open = text.find('{')?;
    let mut depth = 0_usize;
    let mut choices = Vec::new();
    let mut choice_start = open + 1;
    for (index, character) in text.char_indices().skip_while(|(index, _)| *index < open) {
        match character {
            '{' => depth += 1,
            ',' if depth == 1 => {
                choices.push(&text[choice_start..index]);
                choice_start = index + 1;
            }
            '}' if depth == 1 => {
                choices.push(&text[choice_start..index]);
                return Some((&text[..open], choices, &text[index + 1..]));
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn a_text_without_braces_stands_for_itself() {
        assert_eq!(expand("docs/README.md"), ["docs/README.md"]);
        assert_eq!(expand("docs/{open"), ["docs/{open"]);
    }

    #[test]
    fn each_choice_is_spelled_out() {
        assert_eq!(expand("run/{event,state}.rs"), ["run/event.rs", "run/state.rs"]);
    }

    #[test]
    fn groups_may_nest_and_follow_each_other() {
        assert_eq!(expand("std::{fs, io::{Read, Write}}"), ["std::fs", "std::io::Read", "std::io::Write"]);
        assert_eq!(expand("{a,b}/{c,d}"), ["a/c", "a/d", "b/c", "b/d"]);
    }
}
