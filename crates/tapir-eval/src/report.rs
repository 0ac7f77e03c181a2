//! The report: one self-contained page and Markdown tables in the shape of the paper's, its figures beside ours.

use std::fmt::Write;

use tapir::{Mode, ReviserKind};

use crate::paper::{PAPER, Paper, paper};
use crate::plot::{Group, Line, Stack, bars, dashed, keys, lines, stacks};
use crate::style::page;
use crate::table::{escape, points, share, tau};
use crate::tables::{POLICY, mean_and_std, policy_row};
use crate::trace::LEGEND;
use crate::{Error, Evaluation, Incremental, Result, Results, Sweep, Table};

/// All results, merged by task, split and model.
#[derive(Clone, Debug)]
pub struct Report {
    entries: Vec<Results>,
    notes: String,
}

/// A part of the report: the same text and tables in both forms, figures only on the page.
#[derive(Default)]
struct Section {
    title: &'static str,
    text: String,
    parts: Vec<Part>,
}

enum Part {
    Heading(String),
    Table(Table),
    /// Side by side, with a line on how to read them.
    Figures(String, Vec<String>),
    /// Shown on demand on the page, under a heading in the Markdown.
    Folded(String, Table),
    /// Shown on demand on the page, left out of the Markdown.
    Details(String, Table),
    Note(String),
}

impl Report {
    /// Merges results. `notes` is text of the user's own for the head of the report, paragraphs apart by blank lines.
    pub fn new(results: impl IntoIterator<Item = Results>, notes: &str) -> Result<Self> {
        let mut entries: Vec<Results> = Vec::new();
        for result in results {
            let same = |entry: &&mut Results| {
                (&entry.task, &entry.split) == (&result.task, &result.split)
                    && entry.model.name == result.model.name
                    && entry.model.title() == result.model.title()
            };
            match entries.iter_mut().find(same) {
                Some(entry) => entry.merge(result),
                None => entries.push(result),
            }
        }
        if entries.is_empty() {
            return Err(Error::Empty { what: "the list of results".to_owned() });
        }
        // The paper's order of tasks, then its order of models; tasks of the user's own come last.
        let place = |entry: &Results| PAPER.iter().position(|p| p.task == entry.task).unwrap_or(PAPER.len());
        let kind = |entry: &Results| entry.model.reviser == Some(ReviserKind::LinearTransformer);
        entries.sort_by(|a, b| {
            (place(a), &a.task, &b.split, kind(a), a.model.delay, &a.model.name).cmp(&(
                place(b),
                &b.task,
                &a.split,
                kind(b),
                b.model.delay,
                &b.model.name,
            ))
        });
        Ok(Self { entries, notes: notes.trim().to_owned() })
    }

    /// A self-contained HTML page.
    pub fn to_html(&self) -> String {
        let mut body = format!("<h1>{TITLE}</h1>\n");
        for paragraph in self.paragraphs() {
            let _ = writeln!(body, "<p>{}</p>", escape(&paragraph));
        }
        let sections = self.sections();
        body += "<nav>";
        for (i, section) in sections.iter().enumerate() {
            let _ = writeln!(body, "<a href=\"#s{i}\">{}</a>", escape(section.title));
        }
        body += "</nav>\n";
        for (i, section) in sections.iter().enumerate() {
            let _ = writeln!(body, "<h2 id=\"s{i}\">{}</h2>\n<p>{}</p>", escape(section.title), section.text);
            for part in &section.parts {
                let html = match part {
                    Part::Heading(text) => format!("<h3>{}</h3>\n", escape(text)),
                    Part::Table(table) => table.to_html(),
                    Part::Figures(note, figures) => format!(
                        "<div class=\"figures\">{}</div>\n<p class=\"note\">{note}</p>\n",
                        figures.concat()
                    ),
                    Part::Folded(name, table) | Part::Details(name, table) => {
                        format!("<details><summary>{}</summary>{}</details>\n", escape(name), table.to_html())
                    }
                    Part::Note(text) => format!("<p class=\"note\">{}</p>\n", escape(text)),
                };
                body += &html;
            }
        }
        page(TITLE, &body)
    }

    /// The same tables in Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {TITLE}\n");
        for paragraph in self.paragraphs() {
            let _ = write!(text, "\n{paragraph}\n");
        }
        for section in self.sections() {
            let parts: Vec<String> = section
                .parts
                .iter()
                .filter_map(|part| match part {
                    Part::Heading(title) => Some(format!("### {title}\n")),
                    Part::Table(table) => Some(table.to_markdown()),
                    Part::Folded(title, table) => Some(format!("### {title}\n\n{}", table.to_markdown())),
                    Part::Note(note) => Some(format!("{note}\n")),
                    Part::Figures(..) | Part::Details(..) => None,
                })
                .collect();
            if parts.iter().any(|part| part.contains('|')) {
                let _ = write!(
                    text,
                    "\n## {}\n\n{}\n\n{}",
                    section.title,
                    plain(&section.text),
                    parts.join("\n")
                );
            }
        }
        text
    }

    fn paragraphs(&self) -> impl Iterator<Item = String> {
        let tasks = self.entries.iter().map(|entry| &entry.task).collect::<std::collections::BTreeSet<_>>();
        let count = tasks.len();
        let head = format!(
            "{} on {count} {}, measured by the commands of tapir. Figures in brackets are the paper's \
             (Kahardipraja, Madureira, Schlangen: TAPIR, Findings of ACL 2023).",
            if self.entries.len() == 1 {
                "One model".to_owned()
            } else {
                format!("{} models", self.entries.len())
            },
            if count == 1 { "task" } else { "tasks" },
        );
        let notes = self.notes.split("\n\n").map(|text| text.trim().to_owned());
        std::iter::once(head).chain(notes.filter(|text| !text.is_empty()))
    }

    fn sections(&self) -> Vec<Section> {
        let all = [
            self.runs(),
            self.scores(),
            self.incremental(),
            self.speed(),
            self.streaming(),
            self.policy(),
            self.thresholds(),
            self.agreement(),
            self.traces(),
        ];
        all.into_iter().filter(|section| !section.parts.is_empty()).collect()
    }

    fn runs(&self) -> Section {
        let mut table = Table::new([
            "model",
            "task",
            "split",
            "sentences",
            "τ",
            "parameters",
            "sizes",
            "seed",
            "commit",
            "seconds",
        ]);
        for entry in &self.entries {
            let count = entry.evaluation.as_ref().map(|evaluation| evaluation.sentences);
            let preset = entry.model.preset.as_ref();
            let seed = entry.model.seed.as_ref().or_else(|| preset?.get("seed"));
            table.row([
                format!("{} ({})", entry.model.title(), entry.model.name),
                entry.task.clone(),
                entry.split.clone(),
                count.map_or("–".to_owned(), |count| count.to_string()),
                format!(
                    "{:.2}",
                    entry.evaluation.as_ref().map_or(entry.model.threshold, |e| e.setting.threshold)
                ),
                format!("{:.2} M", entry.model.parameters as f64 / 1e6),
                preset.and_then(sizes).unwrap_or_else(|| "–".to_owned()),
                seed.map_or("–".to_owned(), ToString::to_string),
                entry.commit.clone().unwrap_or_else(|| "–".to_owned()),
                format!("{:.1}", entry.seconds),
            ]);
        }
        let text = "Every figure below comes from these models. Sizes are those of LSTM, controller and reviser (layers × self-attention / feed-forward); the time is that of measuring.".to_owned();
        Section { title: "What was run", text, parts: vec![Part::Table(table)] }
    }

    /// Table "non-incremental performance".
    fn scores(&self) -> Section {
        let mut table =
            Table::new(["task", "score", "reference", "Trf", "Trf D1", "Trf D2", "LT", "LT D1", "LT D2"]);
        let mut details = Vec::new();
        for (name, group) in self.by_task() {
            let paper = theirs(group[0]);
            let find = |kind: ReviserKind, delay: usize| {
                let entry = group.iter().find(|e| e.model.reviser == Some(kind) && e.model.delay == delay);
                entry.and_then(|entry| entry.evaluation.as_ref()).map(Evaluation::headline)
            };
            let reference = group.iter().find_map(|entry| entry.reference.as_ref());
            let any = group.iter().find_map(|entry| entry.evaluation.as_ref()).or(reference);
            let Some(any) = any else { continue };
            let mut row = vec![name.clone(), any.headline_name().to_owned()];
            row.push(beside(reference.map(Evaluation::headline), paper.map(|p| p.reference)));
            for (kind, figures) in [
                (ReviserKind::Transformer, paper.map(|p| p.transformer)),
                (ReviserKind::LinearTransformer, paper.map(|p| p.linear)),
            ] {
                for delay in 0..3 {
                    row.push(beside(find(kind, delay), figures.map(|figures| figures[delay])));
                }
            }
            table.row(row);
            for entry in group {
                if let Some(evaluation) = &entry.evaluation {
                    let title = format!("{name}, {} by label", entry.model.title());
                    details.push(Part::Details(title, evaluation.score_table()));
                }
            }
        }
        let mut parts = Vec::new();
        if !table.is_empty() {
            parts.push(Part::Table(table));
            parts.append(&mut details);
        }
        let text = "Scores of the final output on full sentences, in points; as in the paper no revision is forced at the \
                    last word. The reference is the reviser run at every word, so that its final output is that of a \
                    full-sentence model.";
        Section { title: "Full sentences", text: text.to_owned(), parts }
    }

    /// Table and figure "incremental metrics".
    fn incremental(&self) -> Section {
        let mut table = Table::new(["task, model", "EO", "CT", "RC", "score", "against the paper"]);
        let mut figures = Vec::new();
        for (name, group) in self.by_task() {
            let paper = theirs(group[0]);
            let mut bars_of = [Vec::new(), Vec::new(), Vec::new()];
            if let Some(reference) =
                group.iter().filter(|e| e.model.delay == 0).find_map(|e| e.reference.as_ref())
            {
                let figures = paper.map(|p| (p.reference_incremental, p.reference));
                push_incremental(&mut table, format!("{name}, reference"), reference, figures);
                let ours = means(&reference.incremental);
                for (bars, value) in bars_of.iter_mut().zip(ours) {
                    bars.push((value, 4, false));
                }
                for (i, ahead) in reference.incremental.ahead.iter().enumerate() {
                    let figures = paper.map(|p| (p.reference_ahead[i], p.reference_ahead[2 + i]));
                    table.row([
                        format!("{name}, reference Δ{}", ahead.delay),
                        cell(ahead.edit_overhead.mean, figures.map(|f| f.0)),
                        "–".to_owned(),
                        cell(ahead.relative_correctness.mean, figures.map(|f| f.1)),
                        String::new(),
                        String::new(),
                    ]);
                }
            }
            for entry in &group {
                let Some(evaluation) = &entry.evaluation else { continue };
                let (kind, delay) = (entry.model.reviser, entry.model.delay);
                let figures = paper.and_then(|p| incremental_of(p, kind, delay));
                push_incremental(&mut table, format!("{name}, {}", entry.model.title()), evaluation, figures);
                if delay == 0 {
                    let colour = usize::from(kind == Some(ReviserKind::LinearTransformer));
                    for (i, value) in means(&evaluation.incremental).into_iter().enumerate() {
                        bars_of[i].push((value, colour, false));
                        if let Some((figures, _)) = figures {
                            bars_of[i].push((figures[i], colour, true));
                        }
                    }
                }
            }
            let [eo, ct, rc] = bars_of;
            if !eo.is_empty() {
                let group = |name: &str, bars| Group { name: name.to_owned(), bars };
                figures.push(bars(&name, &[group("EO", eo), group("CT", ct), group("RC", rc)]));
            }
        }
        let mut parts = Vec::new();
        if !table.is_empty() {
            let note = keys(&[
                (4, false, "reference"),
                (0, false, "TAPIR-Trf"),
                (0, true, "the paper's"),
                (1, false, "TAPIR-LT"),
                (1, true, "the paper's"),
            ]) + "<br>Lower is better for EO and CT, higher for RC. Each measure has its own scale, from 0.";
            parts.push(Part::Figures(note, figures));
            parts.push(Part::Table(table));
        }
        let text = "Edit overhead (EO), correction time score (CT) and relative correctness (RC), means over sentences. For a \
                    delayed model they are those of its shifted output; Δ is the reference's output held back.";
        Section { title: "Incremental behaviour", text: text.to_owned(), parts }
    }

    /// Table "comparison of incremental inference speed".
    fn speed(&self) -> Section {
        let mut table = Table::new([
            "task, model",
            "reference",
            "TAPIR",
            "first pass",
            "TAPIR ×",
            "the paper's ×",
            "TAPIR int8",
            "int8 ×",
            "µs/word, median / 95 % / 99 %",
        ]);
        for (name, entry) in self.named() {
            let Some(bench) = &entry.bench else { continue };
            let rate = |mode, precision| {
                bench
                    .system(mode, precision)
                    .map_or("–".to_owned(), |s| format!("{:.1}", s.sentences_per_second.mean))
            };
            let times = |precision| {
                bench
                    .system(Mode::TwoPass, precision)
                    .map_or("–".to_owned(), |s| format!("**{:.2} ± {:.2}**", s.speedup.mean, s.speedup.std))
            };
            let paper = theirs(entry).filter(|_| entry.model.delay == 0).map(|p| {
                let linear = entry.model.reviser == Some(ReviserKind::LinearTransformer);
                p.speed[if linear { 2 } else { 1 }] / p.speed[0]
            });
            let latency = bench.system(Mode::TwoPass, "f32").map(|s| s.latency);
            table.row([
                format!("{name}, {}", entry.model.title()),
                rate(Mode::Restart, "f32"),
                rate(Mode::TwoPass, "f32"),
                rate(Mode::FirstPass, "f32"),
                times("f32"),
                paper.map_or("–".to_owned(), |times| format!("{times:.2}")),
                rate(Mode::TwoPass, "int8"),
                times("int8"),
                latency.map_or("–".to_owned(), |l| format!("{:.0} / {:.0} / {:.0}", l.p50, l.p95, l.p99)),
            ]);
        }
        let parts = if table.is_empty() { Vec::new() } else { vec![Part::Table(table)] };
        let text = "Sentences a second on one core, one sentence at a time, every prefix. The reference is the same reviser at \
                    every word, without padding, on the same kernels: the honest baseline. (The paper's pads every input to \
                    200 words, which costs it most of its time.) × is how many times faster than the reference in f32, taken within interleaved repetitions.";
        Section { title: "Speed", text: text.to_owned(), parts }
    }

    fn streaming(&self) -> Section {
        let mut table = Table::new([
            "task, model",
            "streaming EM",
            "words to final",
            "95 %",
            "flickers/word",
            "words changed",
            "operations/sentence",
            "of reference",
        ]);
        for (name, entry) in self.named() {
            let Some(evaluation) = &entry.evaluation else { continue };
            let streaming = &evaluation.streaming;
            let of_reference =
                entry.reference.as_ref().map(|r| evaluation.operations.mean / r.operations.mean);
            table.row([
                format!("{name}, {}", entry.model.title()),
                share(streaming.exact_match.mean),
                format!("{:.2}", streaming.time_to_final.mean),
                format!("{:.0}", streaming.time_to_final_percentiles.p95),
                share(streaming.flickers),
                share(streaming.changed),
                format!("{:.1} M", evaluation.operations.mean / 1e6),
                of_reference.map_or("–".to_owned(), |part| format!("{:.0} %", 100.0 * part)),
            ]);
        }
        let parts = if table.is_empty() { Vec::new() } else { vec![Part::Table(table)] };
        let text = "Beyond the paper: how often the labels shown so far equal the gold ones, how many words pass until a label \
                    is final, how much it flickers, and what it costs in floating-point operations.";
        Section { title: "On a live display", text: text.to_owned(), parts }
    }

    /// Table and figure "distribution of actions and prefixes".
    fn policy(&self) -> Section {
        let mut table = Table::new(POLICY);
        let (mut actions, mut prefixes) = (Vec::new(), Vec::new());
        for (name, entry) in self.named() {
            let Some(analysis) = &entry.analysis else { continue };
            let row = format!("{name}, {}", entry.model.title());
            let (revise, shares) = (analysis.policy.revise_share(), analysis.policy.shares());
            table.row(policy_row(row.clone(), revise, shares));
            let paper = theirs(entry).filter(|_| entry.model.delay == 0);
            let paper = paper.filter(|_| entry.model.reviser == Some(ReviserKind::Transformer));
            let mut stack = |name: String, revise: f64, s: [f64; 8], faint: bool| {
                actions.push(Stack {
                    name: name.clone(),
                    parts: vec![
                        ((1.0 - revise) * s[3], 0, faint),
                        ((1.0 - revise) * s[2], 3, faint),
                        (revise * s[1], 1, faint),
                        (revise * s[0], 4, faint),
                    ],
                });
                prefixes.push(Stack {
                    name: format!("{name} C"),
                    parts: vec![(s[5], 0, faint), (s[4], 4, faint)],
                });
                prefixes.push(Stack {
                    name: format!("{name} I"),
                    parts: vec![(s[6], 3, faint), (s[7], 1, faint)],
                });
            };
            let delay =
                if entry.model.delay == 0 { String::new() } else { format!(" D{}", entry.model.delay) };
            let kind = if entry.model.reviser == Some(ReviserKind::LinearTransformer) { " LT" } else { "" };
            stack(format!("{name}{kind}{delay}"), revise, shares, false);
            if let Some(p) = paper {
                let [revise, rc, wi, rc_c, wi_i] = p.policy;
                let shares = [rc, 1.0 - rc, wi, 1.0 - wi, rc_c, 1.0 - rc_c, wi_i, 1.0 - wi_i];
                table.row(policy_row(format!("{name}, the paper's"), revise, shares));
                stack(format!("{name} paper"), revise, shares, true);
            }
        }
        let mut parts = Vec::new();
        if !table.is_empty() {
            let figures = vec![
                stacks("All steps, by action and prefix", &actions),
                stacks("By prefix: correct (C), incorrect (I)", &prefixes),
            ];
            let note = keys(&[
                (0, false, "WRITE, prefix correct"),
                (3, false, "WRITE, prefix incorrect"),
                (1, false, "REVISE, prefix incorrect (needed)"),
                (4, false, "REVISE, prefix correct (not needed)"),
            ]) + "<br>Muted bars are the paper's.";
            parts.push(Part::Figures(note, figures));
            parts.push(Part::Table(table));
        }
        let text = "A prefix is correct (C) if all labels given before the step match the final output, incorrect (I) \
                    otherwise; R is REVISE, W is WRITE.";
        Section { title: "What the policy does", text: text.to_owned(), parts }
    }

    /// Figure and table "effect of the threshold".
    fn thresholds(&self) -> Section {
        let mut parts = Vec::new();
        let mut figures = Vec::new();
        let mut tables = Vec::new();
        for (name, entry) in self.named() {
            let Some(sweep) = &entry.sweep else { continue };
            let title = format!("{name}, {}", entry.model.title());
            let same = entry.model.delay == 0 && entry.model.reviser == Some(ReviserKind::Transformer);
            let paper = theirs(entry).filter(|_| same);
            // The two plots of a model stay side by side.
            let [low, high] = curves(&title, sweep, paper);
            figures.push(format!("<div class=\"pair\">{low}{high}</div>"));
            tables.push(Part::Folded(format!("{title}: raw numbers"), threshold_table(sweep, paper)));
            if let Some(choice) = &entry.choice {
                tables.push(Part::Note(format!("Chosen: {choice}.")));
            }
        }
        if !figures.is_empty() {
            let note = keys(&[(0, false, "EO"), (1, false, "CT"), (2, false, "RC"), (3, false, "score")])
                + &dashed("the paper's");
            parts.push(Part::Figures(note, figures));
            parts.append(&mut tables);
        }
        let text = "From the reviser at every word (τ = 0) to the first pass alone (τ = 1).";
        Section { title: "The threshold", text: text.to_owned(), parts }
    }

    fn agreement(&self) -> Section {
        let mut table = Table::new([
            "task, model",
            "sentences that agree",
            "words that agree",
            "EO where they agree",
            "EO where not",
            "time: first pass",
            "controller",
            "revisions",
        ]);
        for (name, entry) in self.named() {
            let Some(analysis) = &entry.analysis else { continue };
            let (agreement, time) = (&analysis.agreement, analysis.time);
            let all = (time.first_pass + time.controller + time.reviser).max(f64::MIN_POSITIVE);
            let part = |seconds: f64| format!("{:.0} %", 100.0 * seconds / all);
            table.row([
                format!("{name}, {}", entry.model.title()),
                format!("{:.1} %", 100.0 * agreement.sentences),
                format!("{:.1} %", 100.0 * agreement.words),
                mean_and_std(agreement.overhead_agree),
                mean_and_std(agreement.overhead_disagree),
                part(time.first_pass),
                part(time.controller),
                part(time.reviser),
            ]);
        }
        let parts = if table.is_empty() { Vec::new() } else { vec![Part::Table(table)] };
        let text = "Whether first pass and reviser, each alone, end with the same labels; the edit overhead of the two-pass \
                    model in both cases; and how its time divides among its components on one core.";
        Section { title: "Agreement of the passes, and time", text: text.to_owned(), parts }
    }

    fn traces(&self) -> Section {
        let mut parts = Vec::new();
        for (name, entry) in self.named() {
            for trace in &entry.traces {
                let which =
                    if trace.sentence > 0 { format!(", sentence {}", trace.sentence) } else { String::new() };
                let title = format!("{name}{which}, {}", entry.model.title());
                parts.push(Part::Heading(title));
                let figure = format!("<div class=\"scroll\">{}</div>", trace.to_svg(false));
                parts.push(Part::Figures(String::new(), vec![figure]));
            }
        }
        Section { title: "Sentences, step by step", text: LEGEND.to_owned(), parts }
    }

    /// Results with the title of their task.
    fn named(&self) -> impl Iterator<Item = (String, &Results)> {
        self.entries.iter().map(|entry| (task_title(entry), entry))
    }

    /// The same, those of a task together.
    fn by_task(&self) -> Vec<(String, Vec<&Results>)> {
        let mut groups: Vec<(String, Vec<&Results>)> = Vec::new();
        for (name, entry) in self.named() {
            match groups.last_mut().filter(|(last, _)| *last == name) {
                Some((_, group)) => group.push(entry),
                None => groups.push((name, vec![entry])),
            }
        }
        groups
    }
}

const TITLE: &str = "TAPIR, evaluated";

/// The paper's name for the task; other splits than test are named.
fn task_title(entry: &Results) -> String {
    let title = paper(&entry.task).map_or(entry.task.as_str(), |paper| paper.title);
    if entry.split == "test" || entry.split.is_empty() {
        title.to_owned()
    } else {
        format!("{title} ({})", entry.split)
    }
}

/// The paper's figures, which are those of the test split.
fn theirs(entry: &Results) -> Option<&'static Paper> {
    paper(&entry.task).filter(|_| entry.split == "test")
}

fn incremental_of(paper: &Paper, kind: Option<ReviserKind>, delay: usize) -> Option<([f64; 3], f64)> {
    match kind? {
        ReviserKind::Transformer => {
            Some((*paper.transformer_incremental.get(delay)?, paper.transformer[delay]))
        }
        ReviserKind::LinearTransformer => Some((*paper.linear_incremental.get(delay)?, paper.linear[delay])),
    }
}

fn means(incremental: &Incremental) -> [f64; 3] {
    [incremental.edit_overhead.mean, incremental.correction_time.mean, incremental.relative_correctness.mean]
}

/// `ours (theirs)`, points of 100.
fn beside(ours: Option<f64>, theirs: Option<f64>) -> String {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => format!("{} ({theirs:.2})", points(ours)),
        (Some(ours), None) => points(ours),
        (None, Some(theirs)) => format!("– ({theirs:.2})"),
        (None, None) => "–".to_owned(),
    }
}

/// `ours (theirs)`, shares of 1.
fn cell(ours: f64, theirs: Option<f64>) -> String {
    theirs.map_or(share(ours), |theirs| format!("{} ({theirs:.3})", share(ours)))
}

fn push_incremental(
    table: &mut Table,
    name: String,
    evaluation: &Evaluation,
    paper: Option<([f64; 3], f64)>,
) {
    let ours = means(&evaluation.incremental);
    let score = evaluation.headline();
    table.row([
        name,
        cell(ours[0], paper.map(|p| p.0[0])),
        cell(ours[1], paper.map(|p| p.0[1])),
        cell(ours[2], paper.map(|p| p.0[2])),
        beside(Some(score), paper.map(|p| p.1)),
        paper.map_or(String::new(), |(theirs, their_score)| verdict(ours, score, theirs, their_score)),
    ]);
}

/// Where we are ahead and behind, judged on the digits that the tables show.
fn verdict(ours: [f64; 3], score: f64, theirs: [f64; 3], their_score: f64) -> String {
    let round = |value: f64, digits: f64| (value * digits).round();
    let names = ["EO", "CT", "RC"];
    let mut better = Vec::new();
    let mut worse = Vec::new();
    for (i, name) in names.into_iter().enumerate() {
        let sign = if i == 2 { 1.0 } else { -1.0 };
        let gain = sign * (round(ours[i], 1000.0) - round(theirs[i], 1000.0));
        if gain > 0.0 {
            better.push(name);
        } else if gain < 0.0 {
            worse.push(name);
        }
    }
    match (round(100.0 * score, 100.0) - round(their_score, 100.0)).total_cmp(&0.0) {
        std::cmp::Ordering::Greater => better.push("score"),
        std::cmp::Ordering::Less => worse.push("score"),
        std::cmp::Ordering::Equal => {}
    }
    let list =
        |word: &str, names: Vec<&str>| (!names.is_empty()).then(|| format!("{word}: {}", names.join(", ")));
    let parts: Vec<String> = [list("better", better), list("worse", worse)].into_iter().flatten().collect();
    if parts.is_empty() { "equal".to_owned() } else { parts.join("; ") }
}

/// Two plots: what falls with the threshold, and what is near 1.
fn curves(title: &str, sweep: &Sweep, paper: Option<&Paper>) -> [String; 2] {
    let ours = |name: &str, colour: usize, value: &dyn Fn(&Evaluation) -> f64| Line {
        name: name.to_owned(),
        points: sweep.evaluations.iter().map(|e| (f64::from(e.setting.threshold), value(e))).collect(),
        colour,
        theirs: false,
    };
    let theirs = |name: &str, colour: usize, column: usize| {
        paper.map(|p| Line {
            name: format!("{name}, the paper's"),
            points: p.sweep.iter().enumerate().map(|(i, row)| (i as f64 / 10.0, row[column])).collect(),
            colour,
            theirs: true,
        })
    };
    let low = [
        Some(ours("EO", 0, &|e| e.incremental.edit_overhead.mean)),
        Some(ours("CT", 1, &|e| e.incremental.correction_time.mean)),
        theirs("EO", 0, 0),
        theirs("CT", 1, 1),
    ];
    let high = [
        Some(ours("RC", 2, &|e| e.incremental.relative_correctness.mean)),
        Some(ours("score", 3, &Evaluation::headline)),
        theirs("RC", 2, 2),
        theirs("score", 3, 3),
    ];
    let plot = |what: &str, series: [Option<Line>; 4]| {
        let series: Vec<Line> = series.into_iter().flatten().collect();
        lines(&format!("{title}: {what}"), "threshold τ", &series, false)
    };
    let score = sweep.evaluations.first().map_or("score", Evaluation::headline_name);
    [plot("EO, CT", low), plot(&format!("RC, {score}"), high)]
}

fn threshold_table(sweep: &Sweep, paper: Option<&Paper>) -> Table {
    let score = sweep.evaluations.first().map_or("score", Evaluation::headline_name);
    let mut table = Table::new(["τ", "EO", "CT", "RC", score, "REVISE"]);
    for evaluation in &sweep.evaluations {
        let threshold = evaluation.setting.threshold;
        // The paper has tenths only.
        let tenth = (threshold * 10.0).round();
        let row = paper
            .filter(|_| (threshold * 10.0 - tenth).abs() < 1e-4)
            .and_then(|p| p.sweep.get(tenth as usize));
        let ours = means(&evaluation.incremental);
        table.row([
            tau(threshold),
            cell(ours[0], row.map(|row| row[0])),
            cell(ours[1], row.map(|row| row[1])),
            cell(ours[2], row.map(|row| row[2])),
            beside(Some(evaluation.headline()), row.map(|row| 100.0 * row[3])),
            share(evaluation.actions.revise_share()),
        ]);
    }
    table
}

impl Sweep {
    /// The plot of the sweep, as an SVG file of its own.
    pub fn to_svg(&self, title: &str) -> String {
        let line = |name: &str, colour: usize, value: &dyn Fn(&Evaluation) -> f64| Line {
            name: name.to_owned(),
            points: self.evaluations.iter().map(|e| (f64::from(e.setting.threshold), value(e))).collect(),
            colour,
            theirs: false,
        };
        let score = self.evaluations.first().map_or("score", Evaluation::headline_name);
        let series = [
            line("EO", 0, &|e| e.incremental.edit_overhead.mean),
            line("CT", 1, &|e| e.incremental.correction_time.mean),
            line("RC", 2, &|e| e.incremental.relative_correctness.mean),
            line(score, 3, &Evaluation::headline),
        ];
        lines(title, "threshold τ", &series, true)
    }
}

/// Text without the few tags that the sections use.
fn plain(text: &str) -> String {
    let mut out = text.replace("<b>", "**").replace("</b>", "**");
    for tag in ["<span class=\"wrong\">", "</span>"] {
        out = out.replace(tag, "");
    }
    out
}
/// LSTM, controller and reviser (layers × hidden / feed-forward) of a preset.
fn sizes(preset: &serde_json::Value) -> Option<String> {
    let (processor, controller, reviser) =
        (preset.get("processor")?, preset.get("controller")?, preset.get("reviser")?);
    Some(format!(
        "{} · {} · {} × {} / {}",
        processor.get("hidden")?,
        controller.get("hidden")?,
        reviser.get("layers")?,
        reviser.get("hidden")?,
        reviser.get("feed_forward")?
    ))
}
