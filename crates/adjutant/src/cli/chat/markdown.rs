//! What a model writes, as lines: headings, lists, code, emphasis. A link shows where it goes; nothing is ever loaded.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::theme::Theme;
use super::wrap::{Margin, Piece, wrap};

/// Markdown as lines of a width.
pub(super) fn lines(text: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut page = Page {
        theme,
        width,
        lines: Vec::new(),
        pieces: Vec::new(),
        looks: Vec::new(),
        lists: Vec::new(),
        quotes: 0,
        marker: None,
        code: None,
        link: None,
    };
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(text, options) {
        page.take(event);
    }
    page.flush();
    while page.lines.last().is_some_and(|line| line.width() == 0) {
        page.lines.pop();
    }
    page.lines
}

struct Page {
    theme: Theme,
    width: usize,
    lines: Vec<Line<'static>>,
    /// The paragraph so far.
    pieces: Vec<Piece>,
    looks: Vec<Style>,
    /// The number of the next item of each list around; none where items have no numbers.
    lists: Vec<Option<u64>>,
    quotes: usize,
    /// What the next line of an item begins with.
    marker: Option<String>,
    code: Option<String>,
    link: Option<String>,
}

impl Page {
    fn look(&self) -> Style {
        self.looks.iter().fold(Style::new(), |look, more| look.patch(*more))
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.push_str(text),
            None => {
                let look = self.look();
                self.pieces.push(Piece::new(text, look));
            }
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(text) => self.pieces.push(Piece::new(&text, self.look().patch(self.theme.code()))),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.text("\n"),
            Event::Rule => {
                self.flush();
                let rule = "─".repeat(self.width.min(40));
                self.lines.push(Line::styled(rule, self.theme.quiet()));
                self.gap();
            }
            Event::TaskListMarker(done) => self.text(if done { "☑ " } else { "☐ " }),
            Event::FootnoteReference(name) => self.text(&format!("[{name}]")),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flush();
                let under = if level == HeadingLevel::H1 { Modifier::UNDERLINED } else { Modifier::empty() };
                self.looks.push(self.theme.heading().add_modifier(under));
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.pieces.push(Piece::new(&language, self.theme.quiet()));
                    self.flush();
                }
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.flush();
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                self.marker = Some(match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    Some(None) | None => "• ".to_owned(),
                });
            }
            Tag::Emphasis => self.looks.push(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong | Tag::TableHead => self.looks.push(Style::new().add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.looks.push(Style::new().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.link = Some(dest_url.into_string()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.flush();
                if self.lists.is_empty() {
                    self.gap();
                }
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.looks.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                self.pieces.push(Piece::new(code.trim_end_matches('\n'), self.theme.code()));
                self.write("  ");
                self.gap();
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                if self.lists.is_empty() {
                    self.gap();
                }
            }
            TagEnd::Item | TagEnd::TableRow => self.flush(),
            TagEnd::TableHead => {
                self.looks.pop();
                self.flush();
            }
            TagEnd::TableCell => self.pieces.push(Piece::new("  ", Style::new())),
            TagEnd::Table => self.gap(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.looks.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                if let Some(target) = self.link.take() {
                    self.pieces.push(Piece::new(&format!(" <{target}>"), self.theme.quiet()));
                }
            }
            _ => {}
        }
    }

    /// An empty line, but never two.
    fn gap(&mut self) {
        if self.lines.last().is_some_and(|line| line.width() > 0) {
            self.lines.push(Line::default());
        }
    }

    fn flush(&mut self) {
        if !self.pieces.is_empty() || self.marker.is_some() {
            self.write("");
        }
    }

    fn write(&mut self, indent: &str) {
        let before = format!("{}{}{indent}", "▏ ".repeat(self.quotes), "  ".repeat(self.lists.len().saturating_sub(1)));
        let marker = self.marker.take();
        let behind = match (&marker, self.lists.is_empty()) {
            (Some(marker), _) => " ".repeat(marker.chars().count()),
            (None, false) => "  ".to_owned(),
            (None, true) => String::new(),
        };
        let first = format!("{before}{}", marker.as_ref().unwrap_or(&behind));
        let margin = Margin::new(&first, &format!("{before}{behind}"), self.theme.quiet());
        self.lines.extend(wrap(&std::mem::take(&mut self.pieces), self.width, &margin));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal;

    fn shown(text: &str, width: usize) -> Vec<String> {
        lines(text, width, Theme::of(terminal::Style::Coloured)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_usual_parts_of_a_text_have_their_shapes() {
        let text = "# Title\nOne *two* **three** `four`.\n\n- a\n- b\n  - c\n\n3. x\n4. y\n\n> said\n\n```rs\nfn a() {}\n  b\n```\n[here](https://a.example)\n\n- [x] done";
        assert_eq!(
            shown(text, 40),
            [
                "Title",
                "One two three four.",
                "",
                "• a",
                "• b",
                "  • c",
                "",
                "3. x",
                "4. y",
                "",
                "▏ said",
                "",
                "rs",
                "  fn a() {}",
                "    b",
                "",
                "here <https://a.example>",
                "",
                "• ☑ done",
            ]
        );
    }

    #[test]
    fn a_table_is_rows() {
        assert_eq!(shown("|a|b|\n|-|-|\n|1|2|\n", 40), ["a  b  ", "1  2  "]);
    }

    #[test]
    fn a_text_that_is_not_finished_is_shown_as_far_as_it_goes() {
        assert_eq!(shown("Here:\n```\nlet a", 40), ["Here:", "", "  let a"]);
        assert_eq!(shown("**bo", 40), ["**bo"]);
    }

    #[test]
    fn a_character_that_is_written_as_an_entity_does_not_steer_the_terminal() {
        assert_eq!(shown("a&#27;[2J `\u{1b}]0;x\u{7}`", 60), ["a\\u{1b}[2J \\u{1b}]0;x\\u{7}"]);
        let fenced = "```\u{1b}[1m\n\u{1b}[2J\n```\n[x](\u{1b}[3m)";
        assert!(shown(fenced, 60).iter().all(|line| !line.contains('\u{1b}')), "{:?}", shown(fenced, 60));
    }
}
