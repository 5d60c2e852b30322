//! What the state looks like on a screen. Pure: the same state is the same picture.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::markdown;
use super::question::Ask;
use super::slash;
use super::state::{Chat, Choice, Entry, Fold, Picker, Shown, Want};
use super::theme::{Theme, Tone};
use super::wrap::{Margin, Piece, columns, wrap};
use crate::cli::terminal::{cut, one_line};

const FRAMES: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"];
/// Lines of what is typed that are shown at most.
const TYPED_LINES: usize = 6;
/// Commands that are offered while one is typed, at most.
const OFFERED: usize = 6;
/// Lines of an opened step that are shown at most.
const DETAIL_LINES: usize = 200;
const PROMPT: &str = "› ";

/// Draws the whole screen.
pub(super) fn draw(chat: &Chat, theme: Theme, frame: &mut Frame<'_>) {
    let area = frame.area();
    let width = usize::from(area.width);
    let (bottom, cursor) = match chat.asks.front() {
        Some(ask) => card(chat, ask, width, theme),
        None => typed(chat, width, theme),
    };
    let height = u16::try_from(bottom.len()).unwrap_or(u16::MAX).min(area.height.saturating_sub(2));
    let [top, rule, low, bar] = Layout::vertical([
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(height),
        Constraint::Length(1),
    ])
    .areas(area);
    match &chat.picker {
        Some(picker) => choices(picker, theme, frame, top),
        None => transcript(chat, theme, frame, top),
    }
    frame.render_widget(Paragraph::new(Line::styled("─".repeat(width), theme.quiet())), rule);
    frame.render_widget(Paragraph::new(bottom), low);
    frame.render_widget(Paragraph::new(status(chat, width, theme)).style(theme.bar()), bar);
    if let Some((column, row)) = cursor {
        let clamp = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        let place = Position { x: low.x.saturating_add(clamp(column)), y: low.y.saturating_add(clamp(row)) };
        if low.contains(place) {
            frame.set_cursor_position(place);
        }
    }
}

fn transcript(chat: &Chat, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    let width = usize::from(area.width);
    let (mut lines, mut chosen) = (Vec::new(), None);
    for (index, entry) in chat.entries.iter().enumerate() {
        let is_selected = chat.selected == Some(index);
        if is_selected {
            chosen = Some(lines.len());
        }
        lines.extend(entry_lines(entry, is_selected, width, theme));
    }
    if !chat.live.is_empty() {
        lines.extend(markdown::lines(&chat.live, width, theme));
    }
    if lines.is_empty() {
        lines = welcome(chat, theme);
    }
    let height = usize::from(area.height);
    let last = lines.len().saturating_sub(height);
    let top = last.saturating_sub(chat.scrolled);
    let top = match chosen {
        Some(line) if line < top => line,
        Some(line) if line >= top + height => (line + 1).saturating_sub(height),
        Some(_) | None => top,
    };
    let shown: Vec<_> = lines.into_iter().skip(top).take(height).collect();
    frame.render_widget(Paragraph::new(shown), area);
}

/// A list to choose from.
fn choices(picker: &Picker, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let head = match picker.want {
        Want::Chats => "Which chat? ↑ ↓ Enter, Esc goes back",
        Want::Agents => "Which agent? ↑ ↓ Enter, Esc goes back",
        Want::Models => "Which model? ↑ ↓ Enter, Esc goes back",
    };
    let first = (picker.at + 2).saturating_sub(height);
    let line = |(index, choice): (usize, &Choice)| {
        let style = if index == picker.at { theme.selected() } else { Style::new() };
        Line::styled(cut(&format!("  {}", one_line(&choice.label)), width), style)
    };
    let shown = picker.choices.iter().enumerate().skip(first).map(line);
    let lines: Vec<_> = std::iter::once(Line::styled(head, theme.quiet())).chain(shown).take(height).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn welcome(chat: &Chat, theme: Theme) -> Vec<Line<'static>> {
    let line = |text: String| Line::styled(text, theme.quiet());
    vec![
        Line::styled(format!("A new chat with {}.", one_line(&chat.agent)), Style::new().add_modifier(Modifier::BOLD)),
        line("Write what it should do, and press Enter. /help says what else there is.".to_owned()),
    ]
}

fn entry_lines(entry: &Entry, is_selected: bool, width: usize, theme: Theme) -> Vec<Line<'static>> {
    match entry {
        Entry::You(text) => {
            let margin = Margin::new(PROMPT, "  ", theme.you());
            let mut lines = vec![Line::default()];
            lines.extend(wrap(&[Piece::new(text, theme.you())], width, &margin));
            lines.push(Line::default());
            lines
        }
        Entry::Answer(text) => markdown::lines(text, width, theme),
        Entry::Note { line, tone } => wrap(&[Piece::new(line, theme.tone(*tone))], width, &Margin::default()),
        Entry::Fold(fold) => fold_lines(fold, is_selected, width, theme),
    }
}

fn fold_lines(fold: &Fold, is_selected: bool, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let style = if is_selected { theme.selected() } else { theme.tone(fold.tone) };
    let mut lines = vec![Line::styled(cut(&one_line(&fold.line), width), style)];
    match fold.shown {
        Shown::Line => {}
        Shown::All => {
            let margin = Margin::new("  │ ", "  │ ", theme.quiet());
            let detail =
                fold.detail.lines().flat_map(|line| wrap(&[Piece::new(line, theme.diff(line))], width, &margin));
            lines.extend(detail.take(DETAIL_LINES));
        }
    }
    lines
}

type Bottom = (Vec<Line<'static>>, Option<(usize, usize)>);

/// The line that is typed on, and where its place is.
fn typed(chat: &Chat, width: usize, theme: Theme) -> Bottom {
    let margin = Margin::new(PROMPT, "  ", theme.you());
    let lines = |text: &str| wrap(&[Piece::new(text, Style::new())], width, &margin);
    let before = lines(chat.composer.before());
    let row = before.len().saturating_sub(1);
    let column = before.last().map_or(0, |line| columns(&line.to_string()));
    let first = (row + 1).saturating_sub(TYPED_LINES);
    let offered = slash::like(chat.composer.text()).into_iter().take(OFFERED);
    let mut shown: Vec<_> = offered.map(|line| Line::styled(cut(&line, width), theme.quiet())).collect();
    if let Some(confirm) = &chat.confirm {
        shown.push(Line::styled(cut(&confirm.question, width), Style::new().add_modifier(Modifier::BOLD)));
    }
    let above = shown.len();
    shown.extend(lines(chat.composer.text()).into_iter().skip(first).take(TYPED_LINES));
    (shown, Some((column, above + row - first)))
}

/// A question with all that belongs to it.
fn card(chat: &Chat, ask: &Ask, width: usize, theme: Theme) -> Bottom {
    let warn = theme.tone(Tone::Warn);
    let more = chat.asks.len() - 1;
    let of = if more > 0 { format!("   ({more} more)") } else { String::new() };
    let head = format!("⏸ {}{of}", one_line(&ask.summary));
    let mut lines = vec![Line::styled(cut(&head, width), warn.add_modifier(Modifier::BOLD))];
    if !ask.reason.is_empty() {
        lines.push(Line::styled(cut(&format!("  {}", one_line(&ask.reason)), width), theme.quiet()));
    }
    let change = ask.lines(width, theme);
    let room = Ask::room(chat.size);
    let below = change.len().saturating_sub(ask.top + room);
    lines.extend(change.into_iter().skip(ask.top).take(room));
    if below > 0 {
        lines.push(Line::styled(format!("  … {below} more lines; Space shows them"), theme.quiet()));
    }
    if ask.is_untrusted {
        lines.push(Line::styled("  ⚠ drafted after reading something that none of you wrote", warn));
    }
    let mut cursor = None;
    match (&ask.because, ask.hint) {
        (Some(because), _) => {
            let before = "  because› ";
            let text = cut(&one_line(because.text()), width.saturating_sub(before.len()));
            cursor = Some((columns(before) + columns(&one_line(because.before())), lines.len()));
            lines.push(Line::from(vec![Span::styled(before, theme.you()), Span::raw(text)]));
        }
        (None, _) if ask.is_answered => lines.push(Line::styled("  sent…", theme.quiet())),
        (None, hint) => {
            let margin = Margin::new("  ", "  ", Style::new());
            lines.extend(wrap(&[Piece::new(&ask.keys(), Style::new().add_modifier(Modifier::BOLD))], width, &margin));
            lines.extend(hint.map(|hint| Line::styled(format!("  {hint}"), warn)));
        }
    }
    (lines, cursor)
}

/// The bar: who answers, how freely, what it cost, what goes on.
fn status(chat: &Chat, width: usize, theme: Theme) -> Line<'static> {
    let model = chat.model.as_deref().unwrap_or(&chat.served);
    let mut parts = vec![one_line(&chat.agent)];
    if !model.is_empty() {
        parts.push(one_line(model));
    }
    parts.push(chat.mode.word().to_owned());
    parts.push(chat.cost().to_string());
    if !chat.asks.is_empty() {
        parts.push(format!("{} waiting", chat.asks.len()));
    }
    if let Some(doing) = &chat.doing {
        parts.push(format!("{} {}", FRAMES[chat.frame % FRAMES.len()], one_line(doing)));
    }
    let left = format!(" {}", parts.join(" · "));
    let right = match &chat.notice {
        Some(notice) => format!("{} ", one_line(notice)),
        None if chat.run.is_some() => "Esc stops ".to_owned(),
        None => "/help ".to_owned(),
    };
    let left = cut(&left, width.saturating_sub(columns(&right) + 1));
    let gap = width.saturating_sub(columns(&left) + columns(&right));
    Line::styled(format!("{left}{}{right}", " ".repeat(gap)), theme.bar())
}
