//! One client must not hurt another: whatever it asks for, the others' work is done soon.
//!
//! Nothing here looks at a clock: work is counted in the revisions that were made meanwhile.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt;

use crate::support::{Client, http_from, metric, settings, start};

const JSON: &str = "content-type: application/json\r\n";

/// A long session that asks for a revision at every word, sixteen words in flight, until told to
/// end.
async fn starve(address: SocketAddr, source: [u8; 4], end: Arc<AtomicBool>) {
    let mut client = Client::connect_from(source, address, "?threshold=0").await;
    let words: Vec<String> = (0..100).map(|i| format!("word{i}")).collect();
    client.send(&serde_json::json!({ "update": words }).to_string()).await;
    let mut waiting = 1;
    while !end.load(Ordering::Relaxed) {
        while waiting < 16 {
            client.send(r#"{"push": "play"}"#).await;
            waiting += 1;
        }
        if !client.hear().await.unwrap().provisional {
            waiting -= 1;
        }
    }
    // Whatever is left is not waited for.
    client.0.next().await;
}

async fn revisions(address: SocketAddr) -> u64 {
    metric(address, "tapir_actions_total{model=\"snips\",action=\"REVISE\"}").await
}

/// The median of what others were given while one text of six words was labelled.
async fn revisions_meanwhile(victim: [u8; 4], starvers: [u8; 4]) -> u64 {
    let mut settings = settings();
    settings.workers = 1;
    settings.limits.words = 1_000_000;
    settings.limits.words_per_client = 1_000_000;
    let server = start(settings).await;
    let address = server.address();
    let end = Arc::new(AtomicBool::new(false));
    let starving: Vec<_> =
        (0..4).map(|_| tokio::spawn(starve(address, starvers, end.clone()))).collect();
    crate::support::until("they starve the others", || async {
        metric(address, "tapir_queue").await >= 48
            && metric(address, "tapir_batch_words_count").await > 120
    })
    .await;
    let mut meanwhile = Vec::new();
    for _ in 0..9 {
        let before = revisions(address).await;
        let body = r#"{"text": "play some jazz by miles davis"}"#;
        assert_eq!(http_from(victim, address, "POST", "/v1/tag", JSON, body).await.status, 200);
        meanwhile.push(revisions(address).await - before);
    }
    end.store(true, Ordering::Relaxed);
    for starving in starving {
        starving.await.unwrap();
    }
    server.stop().await;
    meanwhile.sort_unstable();
    meanwhile[meanwhile.len() / 2]
}

/// Six words are read in six rounds, each with a revision or two of the others.
const FEW: u64 = 60;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_cannot_starve_another() {
    let meanwhile = revisions_meanwhile([127, 0, 0, 2], [127, 0, 0, 3]).await;
    assert!(meanwhile < FEW, "{meanwhile} revisions of others came first");
}

/// The same for those who share an address, as behind a proxy.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cannot_starve_another_of_its_client() {
    let meanwhile = revisions_meanwhile([127, 0, 0, 2], [127, 0, 0, 2]).await;
    assert!(meanwhile < FEW, "{meanwhile} revisions of others came first");
}
