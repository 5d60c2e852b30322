//! What a body says: HTML as text with its headings, lists and links, other text as it is, the rest by its size. Pages are
//! read tag by tag and never as a tree, so that no page can take more than its length in time or depth.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

/// A body as text.
pub(super) fn text(kind: &str, body: &[u8]) -> String {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match &*kind {
        "text/html" | "application/xhtml+xml" => html(&String::from_utf8_lossy(body)),
        _ => match std::str::from_utf8(body) {
            Ok(text) => text.to_owned(),
            // A text that was cut may end within a character.
            Err(broken) if is_text(&kind) && broken.error_len().is_none() => String::from_utf8_lossy(body).into_owned(),
            Err(_) => format!("[{} bytes of {kind}, which is no text]", body.len()),
        },
    }
}

fn is_text(kind: &str) -> bool {
    kind.starts_with("text/") || kind.ends_with("json") || kind.ends_with("xml") || kind == "application/javascript"
}

fn html(page: &str) -> String {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(page));
    let tokenizer = Tokenizer::new(Page::default(), TokenizerOpts::default());
    // A page stops at each script it would run; none is run here.
    while !input.is_empty() {
        let _ = tokenizer.feed(&input);
    }
    tokenizer.end();
    tokenizer.sink.0.into_inner().finished()
}

#[derive(Default)]
struct Page(RefCell<Written>);

impl TokenSink for Page {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut page = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(text) => page.say(&text),
            Token::TagToken(tag) => return page.tag(&tag),
            Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken
            | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }
}

/// The text of a page, as far as it is read.
#[derive(Default)]
struct Written {
    text: String,
    /// Line ends that are due before the next word.
    lines: usize,
    /// Whether a blank is due before it.
    blank: bool,
    /// What is open that is not shown: its tag, and how often it is open.
    hidden: Option<(String, usize)>,
    /// How many parts are open in which blanks count.
    kept: usize,
    /// Where the open link leads.
    link: Option<String>,
}

impl Written {
    fn tag(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let (name, opens) = (&*tag.name, tag.kind == TagKind::StartTag);
        if let Some((hidden, open)) = &mut self.hidden {
            if hidden == name {
                *open = if opens { *open + 1 } else { *open - 1 };
            }
            if *open == 0 {
                self.hidden = None;
            }
        } else if opens && !tag.self_closing && matches!(name, "script" | "style" | "noscript" | "template" | "svg") {
            self.hidden = Some((name.to_owned(), 1));
        } else {
            self.shown(tag, name, opens);
        }
        match name {
            "script" if opens => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "noscript" | "iframe" if opens => TokenSinkResult::RawData(RawKind::Rawtext),
            "title" | "textarea" if opens => TokenSinkResult::RawData(RawKind::Rcdata),
            _ => TokenSinkResult::Continue,
        }
    }

    fn shown(&mut self, tag: &Tag, name: &str, opens: bool) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "title" => {
                self.lines = self.lines.max(2);
                if opens {
                    let depth = name.strip_prefix('h').and_then(|depth| depth.parse().ok()).unwrap_or(1);
                    self.word(&format!("{} ", "#".repeat(depth)));
                }
            }
            "li" if opens => {
                self.lines = self.lines.max(1);
                self.word("- ");
            }
            "p" | "ul" | "ol" | "blockquote" | "table" | "section" | "article" => self.lines = self.lines.max(2),
            "pre" => {
                self.lines = self.lines.max(2);
                self.kept = if opens { self.kept + 1 } else { self.kept.saturating_sub(1) };
            }
            "br" | "div" | "tr" | "dt" | "dd" | "header" | "footer" | "nav" | "main" | "hr" | "option" => {
                self.lines = self.lines.max(1);
            }
            "td" | "th" if !opens => self.word(" | "),
            "a" => self.link(tag, opens),
            "img" if opens => self.say(attribute(tag, "alt").unwrap_or_default()),
            _ => {}
        }
    }

    fn link(&mut self, tag: &Tag, opens: bool) {
        if let Some(to) = self.link.take() {
            self.blank = false;
            self.text.push_str(&format!("]({to})"));
        }
        let to = attribute(tag, "href").filter(|to| opens && !to.is_empty() && !to.starts_with("javascript:"));
        if let Some(to) = to {
            self.word("[");
            self.link = Some(to.split_whitespace().collect());
        }
    }

    /// Writes what is due, and a mark of ours.
    fn word(&mut self, mark: &str) {
        if self.text.is_empty() {
            self.lines = 0;
        }
        self.text.extend(std::iter::repeat_n('\n', self.lines));
        if self.blank && self.lines == 0 && !self.text.is_empty() {
            self.text.push(' ');
        }
        (self.lines, self.blank) = (0, false);
        self.text.push_str(mark);
    }

    fn say(&mut self, text: &str) {
        if self.hidden.is_some() {
            return;
        }
        if self.kept > 0 {
            return self.word(text);
        }
        for (at, word) in text.split(char::is_whitespace).enumerate() {
            self.blank |= at > 0 && !self.text.ends_with([' ', '[']);
            if !word.is_empty() {
                self.word(word);
            }
        }
    }

    fn finished(mut self) -> String {
        if let Some(to) = self.link.take() {
            self.text.push_str(&format!("]({to})"));
        }
        self.text.truncate(self.text.trim_end().len());
        self.text
    }
}

fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    tag.attrs.iter().find(|known| &*known.name.local == name).map(|known| &*known.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_its_text() {
        let page = b"<html><head><title>Garden</title><style>p{}</style><script>if (a<b) steal('</p>')</script></head>\
                     <body><h2>Bees</h2><p>Bees\n  <b>hum</b>, <i>wasps</i> do not &amp; sting.</p>\
                     <ul><li>one</li><li>two <a href='/more'>more <b>here</b></a>.</li></ul>\
                     <pre>a\n  b</pre><table><tr><td>1</td><td>2</td></tr></table><img alt='a bee' src=x></body></html>";
        let shown = text("text/html; charset=utf-8", page);
        let wanted = "# Garden\n\n## Bees\n\nBees hum, wasps do not & sting.\n\n- one\n- two [more here](/more).\n\na\n  \
                      b\n\n1 | 2 | \n\na bee";
        assert_eq!(shown, wanted);
    }

    #[test]
    fn no_page_is_too_deep_or_too_broken() {
        let deep = "<div>".repeat(300_000) + "deep" + &"<a href=x>".repeat(1000) + "<svg><svg>" + "never shown";
        let shown = text("text/html", deep.as_bytes());
        assert!(shown.starts_with("deep") && !shown.contains("never shown"), "{}", &shown[..40]);
        for odd in ["<", "<a", "</", "<!--", "<script>", "<a href='", "</a></a></pre></svg>", "&#x110000;"] {
            text("text/html", odd.as_bytes());
        }
    }

    #[test]
    fn a_link_that_would_run_something_is_only_its_words() {
        assert_eq!(text("text/html", b"<a href='javascript:x()'>go</a>"), "go");
    }

    #[test]
    fn what_is_no_text_is_counted() {
        assert_eq!(text("image/png", &[0x89, 0x50, 0xff]), "[3 bytes of image/png, which is no text]");
        assert_eq!(text("application/json", b"{\"a\":1}"), "{\"a\":1}");
        assert_eq!(text("text/plain", "gr\u{fc}".as_bytes().split_last().unwrap().1), "gr\u{fffd}");
    }
}
