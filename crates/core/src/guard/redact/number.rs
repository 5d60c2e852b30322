//! Numbers that are as good as credentials (S2): payment cards and bank accounts by their check digits, US social security
//! numbers by their form; phone numbers where those count too (S4).

use std::sync::LazyLock;

use regex::Regex;

use super::Found;

/// Digits of a payment card.
const CARD_DIGITS: std::ops::RangeInclusive<usize> = 13..=19;

/// Lengths of the account numbers of each country that has them (IBAN).
const IBAN_LENGTHS: &str = "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27GB22GE22GI23GL18\
GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28\
PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20YE30";

static PHONE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        \+[1-9][0-9]{0,2}(?:[\ ./-]?\(?[0-9]{1,4}\)?){2,6}        # +49 30 1234567
        | \([0-9]{2,5}\)[\ -]?[0-9]{3,4}[\ .-]?[0-9]{3,5}          # (555) 123-4567
        | [0-9]{3}[\ .-][0-9]{3}[\ .-][0-9]{4}                     # 555-123-4567
        | 0[0-9]{2,4}[\ /-][0-9]{3,4}(?:[\ -]?[0-9]{2,4}){0,2}     # 030 123456",
    )
    .ok()
});

pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let word_before = at > 0 && bytes.get(at - 1).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let secret = if word_before {
            None
        } else if byte.is_ascii_digit() {
            ssn(text, at).or_else(|| card(text, at))
        } else if byte.is_ascii_alphabetic() {
            iban(text, at)
        } else {
            None
        };
        at = match secret {
            Some(secret) => {
                let end = secret.range.end;
                found.push(secret);
                end
            }
            None => at + 1,
        };
    }
}

/// Whether a number could go on here, or came from before.
fn is_inside_number(text: &str, start: usize, end: usize) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let sign = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(|b| matches!(b, b'-' | b'.'));
    let before = sign(start.checked_sub(1)) && digit(start.checked_sub(2));
    let after = bytes.get(end).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
        || (sign(Some(end)) && digit(Some(end + 1)));
    before || after
}

fn ssn(text: &str, at: usize) -> Option<Found> {
    let number = text.get(at..at + 11)?;
    let (area, rest) = number.split_once('-')?;
    let (group, serial) = rest.split_once('-')?;
    let digits = |part: &str, length: usize| part.len() == length && part.bytes().all(|b| b.is_ascii_digit());
    let formed = digits(area, 3) && digits(group, 2) && digits(serial, 4);
    // These areas, groups and serials are never given out.
    let given = !matches!(area, "000" | "666") && !area.starts_with('9') && group != "00" && serial != "0000";
    (formed && given && !is_inside_number(text, at, at + 11)).then_some(Found { range: at..at + 11, kind: "ssn" })
}

/// A card number that begins here: its digits in one run, or in groups with the same sign between them.
fn card(text: &str, at: usize) -> Option<Found> {
    let groups = groups(text, at);
    // The longest number of whole groups that checks out; more groups may follow that belong to something else.
    (1..=groups.len()).rev().find_map(|count| {
        let groups = groups.get(..count)?;
        let (start, end) = (groups.first()?.0, groups.last()?.1);
        let digits: Vec<u8> = text.get(start..end)?.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
        let lengths: Vec<usize> = groups.iter().map(|(start, end)| end - start).collect();
        let is_card = CARD_DIGITS.contains(&digits.len())
            && is_grouped(&lengths)
            && is_issued(&digits, lengths.len() > 1)
            && luhn(&digits)
            && !is_inside_number(text, start, end);
        is_card.then_some(Found { range: start..end, kind: "card" })
    })
}

/// Up to six groups of digits from here on, with one and the same sign between them.
fn groups(text: &str, at: usize) -> Vec<(usize, usize)> {
    let mut groups = Vec::new();
    let mut start = at;
    let mut sign: Option<char> = None;
    while groups.len() < 6 {
        let rest = text.get(start..).unwrap_or_default();
        let length = rest.bytes().take(*CARD_DIGITS.end() + 1).take_while(u8::is_ascii_digit).count();
        if length == 0 {
            break;
        }
        groups.push((start, start + length));
        let Some(next) = rest.get(length..).and_then(|rest| rest.chars().next()) else { break };
        if !matches!(next, ' ' | '-' | '.' | '\u{A0}' | '\u{202F}' | '\u{2009}')
            || sign.is_some_and(|sign| sign != next)
        {
            break;
        }
        sign = Some(next);
        start += length + next.len_utf8();
    }
    groups
}

fn is_grouped(lengths: &[usize]) -> bool {
    match lengths {
        [_] | [4, 6, 5] | [4, 6, 4] => true,
        [first @ .., last] => lengths.len() >= 4 && first.iter().all(|length| *length == 4) && *last <= 4,
        [] => false,
    }
}

/// Whether a network of cards gives out such numbers.
fn is_issued(digits: &[u8], grouped: bool) -> bool {
    let head = |length: usize| digits.iter().take(length).fold(0_u32, |number, digit| number * 10 + u32::from(*digit));
    let length = digits.len();
    match head(1) {
        // Longer numbers without groups are mostly something else; one network gives them out.
        _ if length > 16 && !grouped && head(2) != 62 => false,
        4 => matches!(length, 13 | 16 | 19),
        5 => (51..=55).contains(&head(2)) && length == 16 || matches!(head(2), 50 | 56..=58),
        2 => (2221..=2720).contains(&head(4)) && length == 16,
        3 => match head(2) {
            34 | 37 => length == 15,
            35 => (3528..=3589).contains(&head(4)) && length >= 16,
            30 | 36 | 38 | 39 => length == 14,
            _ => false,
        },
        6 => length >= 16 && (matches!(head(2), 60 | 62 | 65 | 67 | 63) || (644..=649).contains(&head(3))),
        _ => false,
    }
}

fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| {
            let doubled = u32::from(*digit) * if place % 2 == 1 { 2 } else { 1 };
            if doubled > 9 { doubled - 9 } else { doubled }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// An IBAN that begins here, in one run or in groups of four.
fn iban(text: &str, at: usize) -> Option<Found> {
    let head = text.get(at..at + 4)?;
    let (country, check) = head.split_at_checked(2)?;
    if !check.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let length = iban_length(country)?;
    let mut account = String::with_capacity(length);
    let mut end = at;
    for (offset, c) in text.get(at..)?.char_indices() {
        match c {
            c if c.is_ascii_alphanumeric() => {
                account.push(c.to_ascii_uppercase());
                end = at + offset + 1;
            }
            // Groups have four characters each.
            ' ' | '-' | '\u{A0}' if account.len().is_multiple_of(4) && end == at + offset => {}
            _ => break,
        }
        if account.len() == length {
            break;
        }
    }
    let goes_on = text.as_bytes().get(end).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    (account.len() == length && !goes_on && mod_97(&account)).then_some(Found { range: at..end, kind: "iban" })
}

fn iban_length(country: &str) -> Option<usize> {
    let entries = IBAN_LENGTHS.as_bytes().chunks_exact(4);
    let entry = entries
        .into_iter()
        .find(|entry| entry.get(..2).is_some_and(|known| known.eq_ignore_ascii_case(country.as_bytes())))?;
    std::str::from_utf8(entry.get(2..)?).ok()?.parse().ok()
}

/// The check of an IBAN: with its first four characters at the end and letters as numbers, the rest by 97 is one.
fn mod_97(account: &str) -> bool {
    let (head, tail) = account.split_at(4);
    let rest = tail.chars().chain(head.chars()).try_fold(0_u32, |rest, c| {
        let number = c.to_digit(36)?;
        Some((if number > 9 { rest * 100 } else { rest * 10 } + number) % 97)
    });
    rest == Some(1)
}

pub(super) fn find_phones(text: &str, found: &mut Vec<Found>) {
    let phones = PHONE.iter().flat_map(|phone| phone.find_iter(text)).filter(|phone| {
        let digits = phone.as_str().bytes().filter(u8::is_ascii_digit).count();
        let word_before = text
            .get(..phone.start())
            .and_then(|before| before.chars().next_back())
            .is_some_and(|c| c.is_alphanumeric() || c == '_');
        (7..=15).contains(&digits) && !word_before && !is_inside_number(text, phone.start(), phone.end())
    });
    found.extend(phones.map(|phone| Found { range: phone.range(), kind: "phone" }));
}
