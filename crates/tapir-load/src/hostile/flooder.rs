//! Requests as fast as they are answered, most of them wrong.

use tokio::time::sleep;

use super::{Attack, Ended, PAUSE};
use crate::http::{Http, request};

pub(super) async fn live(attack: &Attack) -> Ended {
    let text = r#"{"text": "play some jazz by miles davis"}"#;
    let ask = |line, headers, body| request(attack.route, line, headers, body);
    let mut wrong_host = b"GET /v1/models HTTP/1.1\r\nhost: evil.example\r\n".to_vec();
    wrong_host.extend(b"content-length: 0\r\n\r\n");
    let requests = [
        ask("POST /v1/tag", "", text),
        ask("GET /v1/models", "", ""),
        ask("GET /nowhere", "", ""),
        ask("DELETE /v1/tag", "", ""),
        ask("POST /v1/tag", "origin: https://evil.example\r\n", text),
        wrong_host,
        ask("POST /v1/tag", "", r#"{"text": 3}"#),
        ask("GET /v1/stream?threshold=7", "", ""),
        ask("POST /admin/reload", "authorization: Bearer guess\r\n", ""),
    ];
    let mut http = Http::new(attack.connect().await?);
    for request in requests.iter().cycle() {
        let sent = http.ask(request).await;
        attack.tally.sent();
        let answer = sent?;
        if answer.status < 400 {
            attack.tally.answered();
        } else {
            attack.tally.refused();
        }
        if answer.closes {
            return Ok(());
        }
        sleep(PAUSE).await;
    }
    Ok(())
}
