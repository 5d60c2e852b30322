//! Tokens with a known shape (S2): a prefix their maker chose so that they can be found.

use std::sync::LazyLock;

use regex::Regex;

use super::{Found, value};

/// Shapes with their kind. Every one begins at a border of words; lengths are the least that occurs, so that a longer
/// token of a later generation is taken whole.
const SHAPES: &[(&str, &str)] = &[
    ("adjutant", r"adj_[A-Za-z0-9_-]{12,}"),
    ("github", r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"),
    ("gitlab", r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_.-]{16,}|GR1348941[A-Za-z0-9_-]{16,}"),
    ("slack", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}|xwfp-[A-Za-z0-9-]{10,}"),
    ("stripe", r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{16,}"),
    ("anthropic", r"sk-ant-[A-Za-z0-9_-]{10,}"),
    ("openai", r"sk-[A-Za-z0-9_-]{16,}|sess-[A-Za-z0-9]{40}"),
    ("google", r"AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}|GOCSPX-[A-Za-z0-9_-]{16,}|1//0[A-Za-z0-9_-]{20,}"),
    ("aws", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16,}|ABSK[A-Za-z0-9+/=]{40,}"),
    ("npm", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi", r"pypi-[A-Za-z0-9_-]{16,}"),
    ("docker", r"dckr_[a-z]{3}_[A-Za-z0-9_-]{16,}"),
    ("huggingface", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    ("sendgrid", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("twilio", r"SK[0-9a-f]{32}"),
    ("mailgun", r"key-[0-9a-f]{32}"),
    ("mailchimp", r"[0-9a-f]{32}-us[0-9]{1,2}"),
    ("telegram", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}"),
    ("discord", r"[MNO][A-Za-z0-9_-]{23,28}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}"),
    ("shopify", r"shp(?:at|ca|pa|ss|rt)_[0-9a-fA-F]{32,}"),
    ("square", r"sq0[a-z]{3}-[A-Za-z0-9_-]{20,}"),
    ("digitalocean", r"do[opr]_v1_[0-9a-f]{40,}"),
    ("databricks", r"dapi[0-9a-f]{32}"),
    ("vault", r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    ("terraform", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
    ("atlassian", r"AT(?:AT|CT|BB)T3[A-Za-z0-9_=-]{20,}"),
    ("linear", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    ("notion", r"ntn_[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{40,}"),
    ("figma", r"fig[dou]_[A-Za-z0-9_-]{30,}"),
    ("airtable", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{40,}"),
    ("grafana", r"gl(?:sa|c)_[A-Za-z0-9_=]{20,}"),
    ("newrelic", r"NRAK-[A-Z0-9]{20,}"),
    ("sentry", r"sntry[su]_[A-Za-z0-9_=+/-]{20,}"),
    ("postman", r"PMAK-[0-9a-f-]{40,}"),
    ("rubygems", r"rubygems_[0-9a-f]{40,}"),
    ("crates", r"cio[A-Za-z0-9]{32}"),
    ("supabase", r"sb[p]_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{20,}"),
    ("groq", r"gsk_[A-Za-z0-9]{30,}"),
    ("xai", r"xai-[A-Za-z0-9]{40,}"),
    ("perplexity", r"pplx-[A-Za-z0-9]{30,}"),
    ("replicate", r"r8_[A-Za-z0-9]{30,}"),
    ("pulumi", r"pul-[0-9a-f]{40}"),
    ("planetscale", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{20,}"),
    ("doppler", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{20,}"),
    ("age", r"AGE-SECRET-KEY-1[0-9A-Z]{40,}"),
    ("facebook", r"EAA[A-Za-z0-9]{60,}"),
    ("jwt", r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,3}"),
];

/// Letters without a dash between them in our own tokens: those that are made here have 52, but an owner may choose another.
const ADJUTANT_RUN: usize = 20;
/// The same of OpenAI's, which hold capitals and small letters else.
const OPENAI_RUN: usize = 16;

/// One pass over the text; which shape it was is asked of the match alone. Without the tables nothing would be found, and
/// a test makes sure that they are valid.
static ANY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let all: Vec<&str> = SHAPES.iter().map(|(_, shape)| *shape).collect();
    Regex::new(&format!(r"(?-u:\b)(?:{})", all.join("|"))).ok()
});
static EACH: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    SHAPES.iter().filter_map(|(kind, shape)| Some((*kind, Regex::new(&format!("^(?:{shape})")).ok()?))).collect()
});

/// The addresses of incoming web hooks, whose path is the secret.
static HOOK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/)([A-Za-z0-9_/+-]{16,})",
    )
    .ok()
});

pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    let tokens = ANY.iter().flat_map(|shapes| shapes.find_iter(text));
    for token in tokens {
        // Dots in a row end a sentence or stand for what was left out; they are part of no token.
        let length = token.as_str().find("..").map_or(token.len(), |dots| dots + 1);
        let whole = token.as_str().get(..length).unwrap_or_default();
        let Some((kind, _)) = EACH.iter().find(|(_, shape)| shape.is_match(whole)) else { continue };
        let secret = whole.trim_end_matches('.');
        if is_secret(kind, secret) {
            found.push(Found { range: token.start()..token.start() + secret.len(), kind });
        }
    }
    let hooks = HOOK.iter().flat_map(|hooks| hooks.captures_iter(text)).filter_map(|hook| hook.get(1));
    found.extend(
        hooks.filter(|path| is_drawn(path.as_str())).map(|path| Found { range: path.range(), kind: "webhook" }),
    );
}

/// Whether a token was drawn, and where its prefix is also how a plain name may begin, whether it is no such name.
fn is_secret(kind: &str, token: &str) -> bool {
    let runs = || token.split(['-', '_']).map(str::len).max().unwrap_or_default();
    let named = match kind {
        "adjutant" => runs() < ADJUTANT_RUN,
        "openai" => runs() < OPENAI_RUN && !has_both_cases(token),
        _ => false,
    };
    !named && is_drawn(token)
}

/// A drawn token holds a digit, or letters of both cases; words with dashes and masked examples do not count.
fn is_drawn(token: &str) -> bool {
    let drawn = token.bytes().any(|b| b.is_ascii_digit()) || has_both_cases(token);
    drawn && !value::is_masked(token)
}

fn has_both_cases(token: &str) -> bool {
    token.bytes().any(|b| b.is_ascii_uppercase()) && token.bytes().any(|b| b.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_every_shape_is_a_valid_expression() {
        assert!(ANY.is_some() && HOOK.is_some());
        assert_eq!(EACH.len(), SHAPES.len());
    }
}
