//! The plots of the report, as SVG that takes its colours from the page.

use std::fmt::Write;

use crate::Percentiles;
use crate::style::STYLE;
use crate::table::escape;

/// A line of a [`lines`] plot.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Which of the five colours.
    pub(crate) colour: usize,
    /// Someone else's figures: dashed, without marks.
    pub(crate) theirs: bool,
}

/// A group of bars that stand together.
pub(crate) struct Group {
    pub(crate) name: String,
    /// Value, colour, faint (someone else's).
    pub(crate) bars: Vec<(f64, usize, bool)>,
}

/// A bar cut into shares.
pub(crate) struct Stack {
    pub(crate) name: String,
    /// Share of 1, colour, faint.
    pub(crate) parts: Vec<(f64, usize, bool)>,
}

/// The spread of a measure on one row.
pub(crate) struct Range {
    pub(crate) name: String,
    pub(crate) colour: usize,
    pub(crate) mean: f64,
    pub(crate) percentiles: Percentiles,
}

/// A line of keys: colour, faint, what it stands for.
pub(crate) fn keys(list: &[(usize, bool, &str)]) -> String {
    let key = |(colour, faint, name): &(usize, bool, &str)| {
        let faint = if *faint { " faint" } else { "" };
        format!(
            "<span class=\"key\"><svg width=\"12\" height=\"12\"><rect class=\"f{colour}{faint}\" width=\"12\" \
             height=\"12\"/></svg>{}</span>",
            escape(name)
        )
    };
    list.iter().map(key).collect::<Vec<_>>().join(" ")
}

/// A key for dashed lines.
pub(crate) fn dashed(name: &str) -> String {
    format!(
        " <span class=\"key\"><svg width=\"26\" height=\"12\"><line class=\"line theirs l4\" x1=\"0\" y1=\"6\" x2=\"26\" \
         y2=\"6\"/></svg>{}</span>",
        escape(name)
    )
}

/// The head of a figure. One that stands alone is larger, and carries its colours and a margin.
fn open(width: f64, height: f64, title: &str, alone: bool) -> String {
    let (margin, scale) = if alone { (12.0, 2.0) } else { (0.0, 1.0) };
    let (full_width, full_height) = (width + 2.0 * margin, height + 2.0 * margin);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-{margin} -{margin} {full_width:.0} {full_height:.0}\" \
         width=\"{:.0}\" height=\"{:.0}\" role=\"img\" aria-label=\"{}\">",
        scale * full_width,
        scale * full_height,
        escape(title)
    );
    if alone {
        let _ = write!(
            svg,
            "<style>{STYLE}</style><rect class=\"paper\" x=\"-{margin}\" y=\"-{margin}\" width=\"{full_width:.0}\" \
             height=\"{full_height:.0}\"/>"
        );
    }
    text(&mut svg, 0.0, 14.0, "title", "start", title);
    svg
}

fn text(svg: &mut String, x: f64, y: f64, class: &str, anchor: &str, content: &str) {
    let content = escape(content);
    let _ = write!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\" text-anchor=\"{anchor}\">{content}</text>"
    );
}

fn rule(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = write!(
        svg,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

fn bar(svg: &mut String, colour: usize, faint: bool, at: (f64, f64), size: (f64, f64)) {
    let faint = if faint { " faint" } else { "" };
    let ((x, y), (width, height)) = (at, size);
    let _ = write!(
        svg,
        "<rect class=\"f{colour}{faint}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
        width.max(0.0),
        height.max(0.0)
    );
}

/// A round step that cuts a range into about four.
fn step(range: f64) -> f64 {
    let raw = (range / 4.0).max(1e-9);
    let power = 10f64.powf(raw.log10().floor());
    let factor =
        [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|f| f * power >= raw - 1e-12).unwrap_or(10.0);
    factor * power
}

fn digits(step: f64) -> usize {
    (0..4usize).find(|d| ((step * 10f64.powi(*d as i32)).fract()).abs() < 1e-6).unwrap_or(4)
}

/// Lines over 0..=1; a plot that stands alone has a key below.
pub(crate) fn lines(title: &str, x_name: &str, series: &[Line], alone: bool) -> String {
    const WIDTH: f64 = 262.0;
    const HEIGHT: f64 = 200.0;
    const LEFT: f64 = 42.0;
    const RIGHT: f64 = 16.0;
    const TOP: f64 = 26.0;
    const BOTTOM: f64 = 38.0;
    let values = || series.iter().flat_map(|line| &line.points).map(|point| point.1);
    let (low, high) =
        values().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let (low, high) = if low.is_finite() { (low, high.max(low + 0.01)) } else { (0.0, 1.0) };
    let tick = step(high - low);
    let (low, high) = ((low / tick).floor() * tick, (high / tick).ceil() * tick);
    let x = |v: f64| LEFT + v * (WIDTH - LEFT - RIGHT);
    let y = |v: f64| HEIGHT - BOTTOM - (v - low) / (high - low) * (HEIGHT - TOP - BOTTOM);
    let mut svg = open(WIDTH, HEIGHT + if alone { 22.0 } else { 0.0 }, title, alone);
    for i in 0..=((high - low) / tick).round() as usize {
        let value = low + i as f64 * tick;
        rule(&mut svg, "grid", (LEFT, y(value)), (WIDTH - RIGHT, y(value)));
        text(
            &mut svg,
            LEFT - 6.0,
            y(value) + 4.0,
            "dim small",
            "end",
            &format!("{value:.*}", digits(tick)),
        );
    }
    for tenth in (0..=10u8).step_by(2) {
        let value = f64::from(tenth) / 10.0;
        text(
            &mut svg,
            x(value),
            HEIGHT - BOTTOM + 15.0,
            "dim small",
            "middle",
            &format!("{value:.1}"),
        );
    }
    text(&mut svg, x(0.5), HEIGHT - 6.0, "dim small", "middle", x_name);
    for (i, line) in series.iter().enumerate().filter(|_| alone) {
        let at = LEFT + 52.0 * i as f64;
        bar(&mut svg, line.colour, line.theirs, (at, HEIGHT + 4.0), (10.0, 10.0));
        text(&mut svg, at + 14.0, HEIGHT + 13.0, "small", "start", &line.name);
    }
    for line in series {
        let path: Vec<String> =
            line.points.iter().map(|(a, b)| format!("{:.1},{:.1}", x(*a), y(*b))).collect();
        let theirs = if line.theirs { " theirs" } else { "" };
        let _ = write!(
            svg,
            "<polyline class=\"line l{}{theirs}\" points=\"{}\"><title>{}</title></polyline>",
            line.colour,
            path.join(" "),
            escape(&line.name)
        );
        if !line.theirs {
            for (x, y) in line.points.iter().map(|(a, b)| (x(*a), y(*b))) {
                // Discs and squares in turn: lines can be told apart without colour.
                let _ = if line.colour % 2 == 0 {
                    write!(
                        svg,
                        "<circle class=\"f{}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.7\"/>",
                        line.colour
                    )
                } else {
                    let (x, y) = (x - 2.4, y - 2.4);
                    write!(
                        svg,
                        "<rect class=\"f{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"4.8\" height=\"4.8\"/>",
                        line.colour
                    )
                };
            }
        }
    }
    svg + "</svg>\n"
}

/// Groups of bars from zero up, each bar with its value on top; each group has a scale of its own.
pub(crate) fn bars(title: &str, groups: &[Group]) -> String {
    const BAR: f64 = 30.0;
    const HEIGHT: f64 = 170.0;
    const TOP: f64 = 40.0;
    const BOTTOM: f64 = 24.0;
    let count: usize = groups.iter().map(|group| group.bars.len()).sum();
    let width = (count as f64 * BAR + groups.len() as f64 * 22.0 + 12.0).max(220.0);
    let mut svg = open(width, HEIGHT, title, false);
    let mut x = 12.0;
    for group in groups {
        let start = x;
        let high = group.bars.iter().map(|bar| bar.0).fold(1e-9, f64::max);
        let y = |v: f64| HEIGHT - BOTTOM - v / high * (HEIGHT - TOP - BOTTOM);
        for &(value, colour, faint) in &group.bars {
            bar(
                &mut svg,
                colour,
                faint,
                (x + 1.0, y(value)),
                (BAR - 2.0, HEIGHT - BOTTOM - y(value)),
            );
            let label = format!("{value:.3}");
            let label = label.strip_prefix('0').unwrap_or(&label);
            text(&mut svg, x + BAR / 2.0, y(value) - 4.0, "small", "middle", label);
            x += BAR;
        }
        text(&mut svg, f64::midpoint(start, x), HEIGHT - 7.0, "dim", "middle", &group.name);
        rule(&mut svg, "axis", (start - 4.0, HEIGHT - BOTTOM), (x + 4.0, HEIGHT - BOTTOM));
        x += 22.0;
    }
    svg + "</svg>\n"
}

/// Horizontal plots: room for names, and the length of a bar.
const LEFT: f64 = 160.0;
const LENGTH: f64 = 360.0;

/// Horizontal bars, each cut into shares of 1 with their figures in them.
pub(crate) fn stacks(title: &str, stacks: &[Stack]) -> String {
    const ROW: f64 = 24.0;
    let height = 30.0 + ROW * stacks.len() as f64 + 4.0;
    let mut svg = open(LEFT + LENGTH + 8.0, height, title, false);
    for (row, stack) in stacks.iter().enumerate() {
        let y = 28.0 + ROW * row as f64;
        text(&mut svg, LEFT - 8.0, y + 14.0, "dim", "end", &stack.name);
        let mut x = LEFT;
        for &(share, colour, faint) in &stack.parts {
            let width = share * LENGTH;
            bar(&mut svg, colour, faint, (x, y), ((width - 1.0).max(0.0), ROW - 5.0));
            if width > 34.0 {
                let class = if faint { "small" } else { "onbar" };
                text(&mut svg, x + width / 2.0, y + 13.5, class, "middle", &format!("{share:.3}"));
            }
            x += width;
        }
    }
    svg + "</svg>\n"
}

/// Rows on one scale from 0: a bar from the median to the 95th percentile, a line on to the largest
/// value, and a mark at the mean, which is also given as a figure.
pub(crate) fn ranges(title: &str, ranges: &[Range]) -> String {
    const ROW: f64 = 16.0;
    let (top, bottom) = (28.0, 28.0 + ROW * ranges.len() as f64);
    let largest = ranges.iter().map(|range| range.percentiles.max).fold(0.01, f64::max);
    let tick = step(largest);
    let ticks = (largest / tick).ceil() as usize;
    let x = |value: f64| LEFT + value / (ticks as f64 * tick) * LENGTH;
    let mut svg = open(LEFT + LENGTH + 40.0, bottom + 22.0, title, false);
    for value in (0..=ticks).map(|i| i as f64 * tick) {
        rule(&mut svg, "grid", (x(value), top), (x(value), bottom));
        let label = format!("{value:.*}", digits(tick));
        text(&mut svg, x(value), bottom + 15.0, "dim small", "middle", &label);
    }
    for (row, Range { name, colour, mean, percentiles }) in ranges.iter().enumerate() {
        let y = top + ROW * row as f64;
        let middle = y + ROW / 2.0;
        text(&mut svg, LEFT - 8.0, y + 12.0, "dim", "end", name);
        let line = format!("line l{colour}");
        rule(&mut svg, &line, (x(percentiles.median), middle), (x(percentiles.max), middle));
        // A bar of no length is still seen.
        let width = (x(percentiles.p95) - x(percentiles.median)).max(1.5);
        bar(&mut svg, *colour, false, (x(percentiles.median), y + 3.0), (width, ROW - 6.0));
        rule(&mut svg, "mean", (x(*mean), y + 1.0), (x(*mean), y + ROW - 1.0));
        let label = format!("{mean:.3}");
        text(&mut svg, x(percentiles.max) + 6.0, y + 12.0, "small", "start", &label);
    }
    svg + "</svg>\n"
}
