//! The page, in a real browser: Chromium, driven over WebDriver.
//!
//! Needs `chromedriver` (Debian: chromium-driver), which `cargo xtask test` installs. Without it
//! there is nothing to test with, and the test says so; where `TAPIR_BROWSER` is set, as in CI, it
//! fails.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{get, http, settings, start, until};

/// The keys that have no character.
const ENTER: &str = "\u{e007}";
const BACKSPACE: &str = "\u{e003}";

struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
}

impl Browser {
    async fn open(arguments: &[&str]) -> Option<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let driver = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(driver) = driver else {
            assert!(std::env::var_os("TAPIR_BROWSER").is_none(), "chromedriver is not installed");
            println!("chromedriver is not installed: the page is not tested");
            return None;
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut browser = Self { driver, address, session: String::new() };
        until("chromedriver listens", || async {
            tokio::net::TcpStream::connect(address).await.is_ok()
        })
        .await;
        let mut flags =
            vec!["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
        flags.extend(arguments);
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": flags },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let opened = browser.call("POST", "/session", wanted).await;
        browser.session = opened["sessionId"].as_str().unwrap().into();
        Some(browser)
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let answer =
            http(self.address, method, path, "content-type: application/json\r\n", &body).await;
        let value = answer.json()["value"].clone();
        assert_eq!(answer.status, 200, "{path}: {value}");
        value
    }

    async fn command(&self, method: &str, command: &str, body: Value) -> Value {
        self.call(method, &format!("/session/{}/{command}", self.session), body).await
    }

    async fn go(&self, url: &str) {
        self.command("POST", "url", json!({ "url": url })).await;
    }

    /// What an expression gives in the page.
    async fn value(&self, expression: &str) -> Value {
        self.command(
            "POST",
            "execute/sync",
            json!({ "script": format!("return {expression};"), "args": [] }),
        )
        .await
    }

    async fn text(&self, selector: &str) -> String {
        self.value(&format!("document.querySelector({selector:?}).textContent.trim()"))
            .await
            .as_str()
            .unwrap()
            .into()
    }

    async fn element(&self, selector: &str) -> String {
        let found = self
            .command("POST", "element", json!({ "using": "css selector", "value": selector }))
            .await;
        found.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned()
    }

    /// Types as a person does, key by key.
    async fn keys(&self, selector: &str, text: &str) {
        let element = self.element(selector).await;
        self.command("POST", &format!("element/{element}/value"), json!({ "text": text })).await;
    }

    /// Clicks where a person could. Looking and clicking are one step for the page: what it draws
    /// between them could move the element away from under the pointer.
    async fn click(&self, selector: &str) {
        let click = format!(
            "(e => {{ e.scrollIntoView({{block: 'center'}}); const at = e.getBoundingClientRect(); \
             const top = document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2); \
             if (!e.contains(top)) return false; e.click(); return true; }})(document.querySelector({selector:?}))"
        );
        until("it can be clicked", || async { self.value(&click).await == true }).await;
    }

    /// Words and labels that are shown.
    async fn words(&self) -> Vec<(String, String)> {
        let list = "[...document.querySelectorAll('#words .word')].map(w => [w.dataset.word ?? \
                    w.querySelector('.text, .token, span')?.textContent ?? w.textContent, w.dataset.label ?? ''])";
        serde_json::from_value(self.value(list).await).unwrap()
    }

    async fn labels(&self) -> Vec<String> {
        self.words().await.into_iter().map(|(_, label)| label).collect()
    }

    async fn screenshot(&self, name: &str) {
        if let Some(folder) = std::env::var_os("TAPIR_SCREENSHOTS") {
            let picture = self.command("GET", "screenshot", json!({})).await;
            let path = std::path::Path::new(&folder).join(format!("{name}.png.base64"));
            std::fs::write(path, picture.as_str().unwrap()).unwrap();
        }
    }

    /// Whatever the page complained about.
    async fn complaints(&self) -> Vec<String> {
        let log = self.command("POST", "se/log", json!({ "type": "browser" })).await;
        let entries = log.as_array().unwrap().iter().filter(|entry| entry["level"] == "SEVERE");
        entries.map(|entry| entry["message"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ended with its session: the browser would outlive its driver.
        if let Ok(mut socket) = std::net::TcpStream::connect(self.address) {
            let _ = write!(
                socket,
                "DELETE /session/{} HTTP/1.1\r\nhost: {}\r\n\r\n",
                self.session, self.address
            );
            let _ = socket.set_read_timeout(Some(Duration::from_secs(10)));
            let _ = socket.read(&mut [0; 100]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn labels(sentence: &str) -> Vec<String> {
    let options = tapir::SessionOptions::new().window(128);
    let mut session =
        tapir::Model::embedded_named("snips-small").unwrap().session_with(options).unwrap();
    session.update(sentence.split(' ')).unwrap();
    session.finish().unwrap().labels.iter().map(ToString::to_string).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_labels_what_is_typed_and_played() {
    let Some(browser) = Browser::open(&["--window-size=1100,1000"]).await else { return };
    let mut settings = settings();
    settings.models.insert("pos".into(), "embedded:pos".into());
    settings.default_model = Some("snips".into());
    let server = start(settings).await;
    let address = server.address();
    browser.go(&format!("http://{address}/")).await;
    until("the page is connected", || async { browser.text("#connection").await == "connected" })
        .await;

    // Typed: labels appear under the words, and the end of the utterance brings the last revision.
    let sentence = "play some jazz by miles davis";
    browser.keys("#text", sentence).await;
    browser.keys("#text", ENTER).await;
    until("the typed words have their labels", || async {
        browser.labels().await == labels(sentence)
    })
    .await;
    browser.screenshot("typed").await;
    assert!(
        browser
            .value("document.querySelectorAll('#chart circle, #chart rect, #chart path').length")
            .await
            .as_u64()
            > Some(5)
    );

    // Taken back: the labels follow.
    browser.click("#reset").await;
    browser.keys("#text", "book a table in boston ").await;
    until("five words", || async { browser.labels().await.len() == 5 }).await;
    browser.keys("#text", &BACKSPACE.repeat(7)).await;
    until("the last word is gone", || async { browser.labels().await.len() == 4 }).await;

    // Never revising, and always.
    browser.click("#reset").await;
    let set = |value: &str| {
        format!(
            "(t => {{ t.value = {value}; t.dispatchEvent(new Event('input', {{bubbles: true}})); \
             t.dispatchEvent(new Event('change', {{bubbles: true}})); return t.value; }})(document.querySelector('#threshold'))"
        )
    };
    browser.value(&set("1")).await;
    let sentence = "play the song little robin redbreast";
    browser.keys("#text", &format!("{sentence} ")).await;
    let options = tapir::SessionOptions::new().threshold(1.0);
    let mut session =
        tapir::Model::embedded_named("snips-small").unwrap().session_with(options).unwrap();
    session.update(sentence.split(' ')).unwrap();
    let shown = |session: &tapir::Session| {
        session.labels().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    until("the first pass's labels", || async { browser.labels().await == shown(&session) }).await;
    browser.value(&set("0")).await;
    browser.click("#again").await;
    session.set_threshold(0.0).unwrap();
    session.reset();
    let edited = sentence.split(' ').map(|word| {
        session.push(word).unwrap().edits.into_iter().filter(|edit| edit.old.is_some()).count()
    });
    let edited: usize = edited.sum();
    assert!(edited > 0, "a sentence that is revised");
    let edits = "[...document.querySelectorAll('#words .word')].reduce((n, w) => n + Number(w.dataset.edits || 0), 0)";
    until("the reviser's labels, and marks where they changed", || async {
        browser.labels().await == shown(&session) && browser.value(edits).await == edited
    })
    .await;

    // Played, word by word.
    browser.click("#reset").await;
    browser.click("#examples button").await;
    until("words are played", || async { browser.labels().await.len() > 2 }).await;
    browser.screenshot("played").await;

    // Another model.
    browser.click("#reset").await;
    let choose = "(s => { s.value = 'pos'; s.dispatchEvent(new Event('change', {bubbles: true})); })(document.querySelector('#model'))";
    browser.value(choose).await;
    until("the page is connected again", || async {
        browser.text("#connection").await == "connected"
    })
    .await;
    browser.keys("#text", "The old man the boat . ").await;
    until("parts of speech", || async {
        browser.labels().await.first().is_some_and(|label| label == "DET")
    })
    .await;

    browser.go(&format!("http://{address}/docs")).await;
    until("the documentation is shown", || async {
        browser.text("body").await.contains("/v1/tag")
    })
    .await;
    browser.screenshot("docs").await;
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");

    // The server stops: the page says so.
    browser.go(&format!("http://{address}/")).await;
    until("the page is connected", || async { browser.text("#connection").await == "connected" })
        .await;
    server.stop().await;
    until("the page says why it is alone", || async {
        browser.text("#connection").await.contains("the server is stopping")
    })
    .await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

/// With a token the page asks for it, and then works.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_asks_for_a_token() {
    let Some(browser) = Browser::open(&["--window-size=400,900"]).await else { return };
    let mut settings = settings();
    settings.tokens = vec!["0123456789abcdef".into()];
    let server = start(settings).await;
    browser.go(&format!("http://{}/", server.address())).await;
    let shown = "document.querySelector('#token').checkVisibility()";
    until("a token is asked for", || async { browser.value(shown).await == true }).await;
    browser.keys("#token", "0123456789abcdef").await;
    browser.keys("#token", ENTER).await;
    until("the page is connected", || async { browser.text("#connection").await == "connected" })
        .await;
    browser.keys("#text", "play some jazz ").await;
    until("three labels", || async { browser.labels().await.len() == 3 }).await;
    browser.screenshot("narrow").await;
    assert_eq!(browser.value("document.documentElement.scrollWidth <= innerWidth").await, true);
    assert_eq!(get(server.address(), "/v1/models").await.status, 401);
    server.stop().await;
}
