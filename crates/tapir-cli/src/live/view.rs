//! What `tapir live` shows.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use tapir::Action;

use super::state::{LiveState, Sentence, Word};

/// Cells of the bar that shows a policy value.
const BAR: usize = 10;
/// A longer word is cut on the screen.
const LONGEST: usize = 24;
/// Columns and rows without which there is nothing to see.
const SMALLEST: (u16, u16) = (40, 6);
const COLOURS: [Color; 6] =
    [Color::Green, Color::Cyan, Color::Magenta, Color::Blue, Color::LightRed, Color::LightGreen];
const KEYS: &str =
    " space labels   ⌫ takes back   enter ends   ↑↓ threshold   ^U clears   esc leaves";

/// Draws the whole screen; the newest lines are always in sight.
pub(super) fn draw(state: &LiveState, frame: &mut Frame) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let (width, height) = SMALLEST;
        let text = format!("too small: {width} × {height} are needed");
        frame.render_widget(Line::from(text).red(), area);
        return;
    }
    let [title, _, main, _, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_title(state, frame, title);
    draw_lines(state, frame, main);
    frame.render_widget(
        match state.problem() {
            Some(problem) => Line::from(format!(" {problem}")).red(),
            None => Line::from(KEYS).dim(),
        },
        keys,
    );
}

fn draw_title(state: &LiveState, frame: &mut Frame, area: Rect) {
    let task = &state.model().config().task;
    let mut title = vec![" tapir live".bold(), format!("  {task}").dim()];
    if let Some(intent) = state.intent() {
        title.push(format!("  {} {:.2}", intent.label, intent.probability).green());
        if intent.is_outside() {
            title.push("  not for this model".yellow());
        }
    }
    frame.render_widget(Line::from(title), area);
    let threshold = match state.threshold() {
        1.0.. => "threshold 1.00: never revises ".to_owned(),
        0.0 => "threshold 0.00: revises at every word ".to_owned(),
        threshold => format!("threshold {threshold:.2} "),
    };
    frame.render_widget(Line::from(threshold).right_aligned(), area);
}

fn draw_lines(state: &LiveState, frame: &mut Frame, area: Rect) {
    let mut lines = Vec::new();
    for sentence in state.sentences() {
        lines.extend(finished(state, sentence, area.width as usize));
        lines.push(Line::default());
    }
    let width = state.words().iter().map(|word| Span::raw(&word.text).width()).max().unwrap_or(0);
    let width = width.clamp(8, LONGEST);
    lines.extend(state.words().iter().map(|word| row(state, word, width)));
    if lines.is_empty() && state.typing().is_empty() {
        lines.extend(welcome(state));
    }
    // The cursor stands behind what is being typed; of a very long word the end is shown.
    let typing = state.typing();
    let room = (area.width as usize).saturating_sub(4);
    let hidden = typing.chars().count().saturating_sub(room);
    let typing: String = typing.chars().skip(hidden).collect();
    let cursor = 2 + Span::raw(&typing).width();
    lines.push(Line::from(vec!["› ".yellow(), typing.into()]));

    let skipped = lines.len().saturating_sub(area.height as usize);
    for (line, y) in lines[skipped..].iter().zip(area.y..) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
    let last = area.y + (lines.len() - skipped).saturating_sub(1) as u16;
    frame.set_cursor_position(Position { x: (area.x + cursor as u16).min(area.right()), y: last });
}

/// One word: what the policy thought, what it did, the label now, and what it was a moment ago.
fn row(state: &LiveState, word: &Word, width: usize) -> Line<'static> {
    let mut spans = vec!["  ".into(), padded(&word.text, width).into(), "  ".into()];
    match word.policy {
        Some(policy) => {
            let revised = word.action == Some(Action::Revise);
            spans.extend(bar(policy, state.threshold(), revised));
            spans.push(format!(" {policy:.2}  ").dim());
        }
        None => spans.push(" ".repeat(BAR + 7).into()),
    }
    spans.push(match word.action {
        Some(Action::Revise) => "REVISE  ".yellow().bold(),
        Some(Action::Write) => "WRITE   ".dim(),
        None => "        ".into(),
    });
    let label = word.label.as_deref().unwrap_or("…");
    let style = style(state, label);
    match &word.old {
        Some(old) => {
            spans.push(Span::styled(format!(" {label} "), style.bold().reversed()));
            spans.push(format!("  was {old}").yellow());
        }
        None => spans.push(Span::styled(format!(" {label}"), style)),
    }
    if word.settled {
        spans.push(" ✓".green());
    }
    Line::from(spans)
}

/// A value from 0 to 1 in eighths of a cell, with a mark where the threshold is.
fn bar(value: f32, threshold: f32, revised: bool) -> [Span<'static>; 2] {
    const EIGHTHS: [&str; 7] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (value.clamp(0.0, 1.0) * (BAR * 8) as f32).round() as usize;
    let mut full = "█".repeat(eighths / 8);
    if let Some(part) = (eighths % 8).checked_sub(1) {
        full += EIGHTHS[part];
    }
    let mark = ((threshold * BAR as f32) as usize).min(BAR - 1);
    let rest: String =
        (full.chars().count()..BAR).map(|cell| if cell == mark { '│' } else { '·' }).collect();
    [full.fg(if revised { Color::Yellow } else { Color::Blue }), rest.dim()]
}

/// A sentence that has ended, its labelled stretches in brackets, and what it took.
fn finished(state: &LiveState, sentence: &Sentence, width: usize) -> Vec<Line<'static>> {
    let mut pieces: Vec<Vec<Span>> = Vec::new();
    let mut next = 0;
    for span in &sentence.spans {
        let before = sentence.words.get(next..span.start).unwrap_or_default();
        pieces.extend(before.iter().map(|word| vec![word.clone().into()]));
        let words = sentence.words.get(span.start..span.end).unwrap_or_default().join(" ");
        let style = style(state, &span.label);
        pieces.push(vec![
            "[".dim(),
            Span::styled(words, style.bold()),
            Span::styled(format!(" {}", span.label), style.dim()),
            "]".dim(),
        ]);
        next = span.end;
    }
    let rest = sentence.words.get(next..).unwrap_or_default();
    pieces.extend(rest.iter().map(|word| vec![word.clone().into()]));
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut summary =
        vec![count(sentence.words.len(), "word"), count(sentence.revisions, "revision")];
    summary.extend(sentence.intent.iter().map(|intent| format!("intent {intent}")));
    if sentence.mended > 0 {
        summary.push(count(sentence.mended, "label") + " mended at the end");
    }
    let mut lines = wrapped(pieces, width);
    lines.push(Line::from(format!("  {}", summary.join(", "))).dim());
    lines
}

/// Pieces with a space between them, in as many lines as they need.
fn wrapped(pieces: Vec<Vec<Span<'static>>>, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(" ")];
    for piece in pieces {
        let length: usize = piece.iter().map(Span::width).sum();
        if lines.last().is_none_or(|line| line.width() + 1 + length > width) {
            lines.push(Line::from(" "));
        }
        if let Some(line) = lines.last_mut() {
            line.push_span(" ");
            line.extend(piece);
        }
    }
    lines.retain(|line| line.width() > 1);
    lines
}

fn welcome(state: &LiveState) -> Vec<Line<'static>> {
    let example = match state.model().config().task.as_str() {
        "snips" => "  Try: add step to me to the fifty clasicos playlist",
        _ => "  Labels may change when later words make things clearer.",
    };
    vec![
        Line::from("  Type a sentence: each word is labelled when you press space."),
        Line::from(example).dim(),
        Line::default(),
    ]
}

/// A label's colour: the same for all positions in a stretch, none for words outside.
fn style(state: &LiveState, label: &str) -> Style {
    let kind = |label: &str| label.split_once('-').map_or(label, |(_, kind)| kind).to_owned();
    if label == "O" || label == "…" {
        return Style::new().dim();
    }
    let wanted = kind(label);
    let mut kinds: Vec<String> = state
        .model()
        .labels()
        .iter()
        .filter(|label| &***label != "O")
        .map(|label| kind(label))
        .collect();
    kinds.dedup();
    let place = kinds.iter().position(|kind| *kind == wanted).unwrap_or(0);
    Style::new().fg(COLOURS[place % COLOURS.len()])
}

/// A word in exactly `width` columns.
fn padded(word: &str, width: usize) -> String {
    let mut text = word.to_owned();
    if Span::raw(word).width() > width {
        while Span::raw(&text).width() >= width {
            text.pop();
        }
        text.push('…');
    }
    let blank = width.saturating_sub(Span::raw(&text).width());
    text + &" ".repeat(blank)
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::KeyCode;

    use super::*;

    fn screen(state: &LiveState, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(state, frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_window_that_is_too_small_says_so() {
        for (width, height) in [(39, 20), (80, 5)] {
            assert!(screen(&typed("play "), width, height).contains("40 × 6 are needed"));
        }
    }

    fn typed(keys: &str) -> LiveState {
        let model = tapir::doctest::parts().load().unwrap();
        let mut state = LiveState::new(model, 0.5).unwrap();
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '↓' => KeyCode::Down,
                letter => KeyCode::Char(letter),
            };
            state.key(code.into());
        }
        state
    }

    #[test]
    fn the_first_screen_says_what_to_do() {
        insta::assert_snapshot!(screen(&typed(""), 84, 8));
    }

    #[test]
    fn words_labels_and_a_finished_sentence() {
        insta::assert_snapshot!(screen(
            &typed("some jazz by miles davis\nplay some jazz by mi"),
            84,
            16
        ));
    }

    #[test]
    fn the_newest_lines_are_in_sight() {
        let text = screen(&typed(&"play some jazz by miles ".repeat(20)), 84, 12);
        assert!(text.contains("miles") && text.contains('›'));
    }

    #[test]
    fn no_screen_is_too_small_and_no_word_too_long() {
        let mut keys = "play\n".repeat(3) + "東京".repeat(40).as_str() + " ↓";
        keys += &"x".repeat(300);
        let state = typed(&keys);
        for (width, height) in [(1, 1), (2, 3), (5, 5), (20, 4), (300, 100)] {
            screen(&state, width, height);
        }
    }
}
