//! Words that are often misspelt, and how to write them. A short list on purpose: a wrong correction in somebody's
//! notes is worse than a slip that stays.

/// Slips and corrections, both in lower case. No slip is a word of its own.
const SLIPS: &[(&str, &str)] = &[
    ("accomodate", "accommodate"),
    ("accross", "across"),
    ("acheive", "achieve"),
    ("adress", "address"),
    ("agian", "again"),
    ("allways", "always"),
    ("anser", "answer"),
    ("appartment", "apartment"),
    ("artical", "article"),
    ("basicly", "basically"),
    ("becuase", "because"),
    ("beggining", "beginning"),
    ("beleive", "believe"),
    ("buisness", "business"),
    ("bycicle", "bicycle"),
    ("calender", "calendar"),
    ("collegue", "colleague"),
    ("comming", "coming"),
    ("completly", "completely"),
    ("concious", "conscious"),
    ("definately", "definitely"),
    ("diffrent", "different"),
    ("dissapear", "disappear"),
    ("docter", "doctor"),
    ("embarass", "embarrass"),
    ("enviroment", "environment"),
    ("excercise", "exercise"),
    ("existance", "existence"),
    ("febuary", "february"),
    ("finaly", "finally"),
    ("foriegn", "foreign"),
    ("freind", "friend"),
    ("freinds", "friends"),
    ("goverment", "government"),
    ("grammer", "grammar"),
    ("greatful", "grateful"),
    ("gaurd", "guard"),
    ("happend", "happened"),
    ("hieght", "height"),
    ("immediatly", "immediately"),
    ("independant", "independent"),
    ("intresting", "interesting"),
    ("knowlege", "knowledge"),
    ("libary", "library"),
    ("maintainance", "maintenance"),
    ("mesage", "message"),
    ("mintues", "minutes"),
    ("mlik", "milk"),
    ("neccessary", "necessary"),
    ("noticable", "noticeable"),
    ("occured", "occurred"),
    ("ocasion", "occasion"),
    ("peice", "piece"),
    ("peopel", "people"),
    ("plese", "please"),
    ("posession", "possession"),
    ("prefered", "preferred"),
    ("probaly", "probably"),
    ("publically", "publicly"),
    ("realy", "really"),
    ("reccomend", "recommend"),
    ("recieve", "receive"),
    ("refered", "referred"),
    ("rember", "remember"),
    ("resturant", "restaurant"),
    ("rythm", "rhythm"),
    ("saftey", "safety"),
    ("seperate", "separate"),
    ("shedule", "schedule"),
    ("succesful", "successful"),
    ("suprise", "surprise"),
    ("teh", "the"),
    ("thier", "their"),
    ("tomatos", "tomatoes"),
    ("tommorow", "tomorrow"),
    ("tommorrow", "tomorrow"),
    ("tounge", "tongue"),
    ("truely", "truly"),
    ("unfortunatly", "unfortunately"),
    ("untill", "until"),
    ("usefull", "useful"),
    ("vegtables", "vegetables"),
    ("wensday", "wednesday"),
    ("wich", "which"),
    ("wierd", "weird"),
    ("writting", "writing"),
];

/// A correction that was made: what was written, what stands there now.
pub(super) type Fix = (String, String);

/// The line with its slips corrected. Code in backticks, addresses and names of files are left alone.
pub(super) fn correct(line: &str, fixes: &mut Vec<Fix>) -> String {
    let mut text = String::with_capacity(line.len());
    for (at, span) in line.split('`').enumerate() {
        if at > 0 {
            text.push('`');
        }
        if at % 2 == 1 {
            text.push_str(span);
            continue;
        }
        for token in span.split_inclusive(char::is_whitespace) {
            if token.contains(['/', '\\', '@', '_', '#', '=']) {
                text.push_str(token);
            } else {
                correct_token(token, &mut text, fixes);
            }
        }
    }
    text
}

fn correct_token(token: &str, text: &mut String, fixes: &mut Vec<Fix>) {
    let mut rest = token;
    while let Some(start) = rest.find(char::is_alphabetic) {
        let (before, word) = rest.split_at(start);
        let end = word.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        text.push_str(before);
        match correction(word) {
            Some(right) => {
                text.push_str(&right);
                fixes.push((word.to_owned(), right));
            }
            None => text.push_str(word),
        }
        rest = after;
    }
    text.push_str(rest);
}

fn correction(word: &str) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    let (_, right) = SLIPS.iter().find(|(slip, _)| *slip == lower)?;
    if word.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Some(right.to_ascii_uppercase());
    }
    let mut right = (*right).to_owned();
    if word.starts_with(|first: char| first.is_ascii_uppercase())
        && let Some(first) = right.get_mut(..1)
    {
        first.make_ascii_uppercase();
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corrected(line: &str) -> String {
        correct(line, &mut Vec::new())
    }

    #[test]
    fn a_slip_is_corrected_in_the_case_it_was_written_in() {
        assert_eq!(corrected("Teh mlik, TOMMOROW (mlik)!"), "The milk, TOMORROW (milk)!");
        assert_eq!(corrected("milkshake, wiches, mlik2, ämlik"), "milkshake, wiches, mlik2, ämlik");
    }

    #[test]
    fn code_addresses_and_file_names_are_left_alone() {
        for line in ["`teh code`", "see https://host/teh", "teh@host", "notes/teh.md", "teh_name", "#teh"] {
            assert_eq!(corrected(line), line);
        }
    }

    #[test]
    fn no_correction_is_itself_a_slip() {
        for (slip, right) in SLIPS {
            assert!(correction(right).is_none(), "{slip} -> {right}");
        }
    }
}
