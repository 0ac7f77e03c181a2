//! `tapir stream` as a recogniser drives it, on a tiny model with random weights.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};

use tapir::protocol::{Request, Response};

use crate::support::{output, rounded, spawn, tapir};

#[test]
fn a_stream_answers_every_line() {
    let (_dir, mut program) = tapir("stream");
    let lines = [
        r#"{"push": "play"}"#,
        r#"{"update": ["play", "jazz"]}"#,
        r#"{"session": "b", "push": "some"}"#,
        r#"{"revoke": 1}"#,
        r#"{"revoke": 9}"#,
        "nonsense",
        "",
        r#"{"finish": true}"#,
        r#"{"push": "more"}"#,
        r#"{"reset": true}"#,
    ];
    let text = output(program.write_stdin(lines.join("\n")));
    insta::assert_snapshot!(rounded(&text));
}

/// What the program answers to messages, a line each.
fn answers(input: impl Into<Vec<u8>>) -> Vec<Response> {
    let (_dir, mut program) = tapir("stream");
    let text = output(program.write_stdin(input));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A thousand recognisers at once. Each says words, takes some back, sends whole hypotheses and
/// changes its mind.
#[test]
fn a_thousand_interleaved_sessions_are_as_fresh_ones() {
    const SESSIONS: usize = 1000;
    let vocabulary = ["play", "some", "jazz", "by", "miles", "davis", "unheard"];
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let mut said: Vec<Vec<String>> = vec![Vec::new(); SESSIONS];
    let mut requests = Vec::new();
    for _ in 0..8 * SESSIONS {
        let id = random(SESSIONS);
        let words = &mut said[id];
        let mut request = Request { session: Some(id.to_string()), ..Request::default() };
        let word = vocabulary[random(vocabulary.len())].to_owned();
        match random(4) {
            0 if !words.is_empty() => {
                let back = 1 + random(words.len());
                words.truncate(words.len() - back);
                request.revoke = Some(back);
            }
            1 => {
                words.truncate(random(words.len() + 1));
                words.extend([word, "jazz".to_owned()]);
                request.update = Some(words.clone());
            }
            _ => {
                words.push(word.clone());
                request.push = Some(word);
            }
        }
        requests.push(request);
    }
    let finish =
        |id: usize| Request { session: Some(id.to_string()), finish: true, ..Request::default() };
    requests.extend((0..SESSIONS).map(finish));
    let input = requests.iter().fold(String::new(), |mut text, request| {
        writeln!(text, "{}", serde_json::to_string(request).unwrap()).unwrap();
        text
    });

    let answers = answers(input);
    assert_eq!(answers.len(), requests.len());
    let mut screens = vec![Vec::new(); SESSIONS];
    for (request, answer) in requests.iter().zip(&answers) {
        assert_eq!((&answer.session, &answer.error), (&request.session, &None));
        let id: usize = request.session.as_ref().unwrap().parse().unwrap();
        answer.update.as_ref().unwrap().apply(&mut screens[id]);
    }
    let model = tapir::doctest::parts().load().unwrap();
    for (id, end) in answers[answers.len() - SESSIONS..].iter().enumerate() {
        let mut session = model.session();
        for word in &said[id] {
            session.push(word).unwrap();
        }
        let labels = session.finish().unwrap().labels;
        assert_eq!(end.labels.as_ref(), Some(&labels), "session {id}");
        assert_eq!(end.spans.as_ref(), Some(&session.spans()), "session {id}");
        assert_eq!(screens[id], labels, "the edits of session {id}");
    }
}

#[test]
fn bad_lines_are_answered_and_change_nothing() {
    let mut input = b"{\"push\": \"play\"}\n{\"push\": \"\xff\"}\n\0\x01\n".to_vec();
    input.extend(b"{\"push\": 7}\n[]\n{}\n{\"update\": [\"\"]}\n{\"push\": \"jazz\"}");
    let answers = answers(input);
    let errors: Vec<_> =
        answers.iter().map(|answer| answer.error.clone().unwrap_or_default()).collect();
    insta::assert_snapshot!(errors.join("\n"));
    assert_eq!(answers.last().unwrap().update.as_ref().unwrap().step, 2);
}

/// However long a session is: whoever replays the edits has every label, and the end says from
/// which word on it repeats them.
#[test]
fn long_sessions_lose_no_label() {
    for length in [1, 100, 464, 465, 1_000] {
        let words: Vec<String> = (0..length).map(|i| format!("w{}", i % 17)).collect();
        let pushes = words.iter().map(|word| format!("{{\"push\": \"{word}\"}}"));
        let messages: Vec<String> = pushes.chain(["{\"finish\": true}".to_owned()]).collect();
        let answers = answers(messages.join("\n"));
        let mut labels = Vec::new();
        for answer in &answers {
            answer.update.as_ref().unwrap().apply(&mut labels);
        }
        assert_eq!(labels.len(), length);
        let end = answers.last().unwrap();
        let (first, last) = (end.first.unwrap(), end.labels.as_ref().unwrap());
        assert_eq!(first + last.len(), length);
        assert_eq!(labels[first..], last[..]);
    }
}

#[test]
fn every_line_has_an_answer_even_an_empty_one() {
    assert!(answers("").is_empty());
    let answers = answers("\n\n  \n");
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|answer| answer.error.as_ref().unwrap().contains("an empty line")));
}

#[test]
fn sessions_have_a_limit() {
    let (_dir, mut program) = tapir("stream");
    let input =
        "{\"session\": \"a\", \"push\": \"play\"}\n{\"session\": \"b\", \"push\": \"play\"}\n";
    let text = output(program.args(["--sessions", "1"]).write_stdin(input));
    assert!(text.lines().nth(1).unwrap().contains("close one first"));
}

#[test]
fn a_message_without_end_is_passed_over_in_little_memory() {
    let (_dir, mut child) = spawn("stream", &[]);
    let (mut to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut answers = BufReader::new(from).lines();
    let megabyte = vec![b'x'; 1 << 20];
    for _ in 0..64 {
        to.write_all(&megabyte).unwrap();
    }
    to.write_all(b"\n{\"push\": \"play\"}\n").unwrap();
    assert!(answers.next().unwrap().unwrap().contains("a message longer than 1048576 bytes"));
    assert!(answers.next().unwrap().unwrap().contains("\"step\":1"));
    #[cfg(target_os = "linux")]
    {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kilobytes: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kilobytes < 48_000, "{kilobytes} kB for a message of 64 MB");
    }
    drop(to);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_closed_pipe_is_no_error() {
    let (_dir, mut child) = spawn("stream", &[]);
    drop(child.stdout.take());
    let _ =
        child.stdin.take().unwrap().write_all("{\"push\": \"play\"}\n".repeat(10_000).as_bytes());
    let end = child.wait_with_output().unwrap();
    assert!(end.status.success(), "{}", String::from_utf8_lossy(&end.stderr));
}
