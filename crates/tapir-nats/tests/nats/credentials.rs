//! Who is let in: passwords, tokens, credentials of `nsc`, TLS. A real nats-server decides; who is
//! not let in is told why, and does not wait.

use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use nkeys::KeyPair;
use rcgen::{CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair as TlsKey};
use serde_json::{Value, json};
use tapir::Model;
use tapir::protocol::Response;
use tapir_nats::{Client, Connection, Gateway, Options, Worker};
use tapir_serve::RemoteOpening;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;

use crate::support::{MODEL, Nats, cell, expected, utterance, worker};

/// Longer than anything takes on a machine that has other things to do, and shorter than for ever.
const PATIENCE: Duration = Duration::from_mins(2);

/// A worker is started by one connection, and a client and a gateway get its answers by others:
/// those of the library.
async fn works(nats: &Nats, server: &Connection, client: &Connection) {
    let all = async {
        nats.wait_for(server).await;
        let worker = Worker::start(worker(server.clone(), cell(1))).await.unwrap();
        let messages = utterance("play some jazz by miles davis please");
        let model = Model::embedded_named(MODEL).unwrap();
        let library = expected(&model, &Options::default(), &messages);

        let client = Client::connect(client, "tapir").await.unwrap();
        let (mut sender, mut answers) = client.session("talks", &Options::default()).await.unwrap();
        for (message, library) in messages.iter().zip(&library) {
            sender.send(message).await.unwrap();
            for expected in library {
                assert_eq!(answers.next().await.unwrap().response, *expected);
            }
        }

        let gateway = Gateway::connect(server, &cell(1)).await.unwrap();
        let (sender, mut answers) = unbounded_channel::<Response>();
        let session = gateway.open(RemoteOpening {
            model: MODEL.into(),
            threshold: None,
            provisional: true,
            answers: Box::new(move |response, _| drop(sender.send(response))),
        });
        messages.iter().for_each(|message| session.ask(message.clone()));
        for expected in library.iter().flatten() {
            assert_eq!(answers.recv().await.unwrap(), *expected);
        }
        worker.stop().await;
    };
    timeout(PATIENCE, all).await.unwrap_or_else(|_| panic!("it hangs:\n{}", nats.log()));
}

/// What a worker, a gateway and a client are told that are not let in: the same.
async fn refusal(connection: &Connection) -> String {
    let refused = async || {
        let worker = Worker::start(worker(connection.clone(), cell(1))).await.err().unwrap();
        let gateway = Gateway::connect(connection, &cell(1)).await.err().unwrap();
        let client = Client::connect(connection, "tapir").await.err().unwrap();
        [worker, gateway, client].map(|error| error.to_string())
    };
    let all = async {
        let mut all = refused().await;
        // A machine that is busy may be too slow for the client, which is not what is asked here.
        while all.iter().any(|text| text.contains(": timed out;")) {
            all = refused().await;
        }
        // What they say of a line that is dead differs, and what they wanted to do first; the advice
        // does not.
        let [first, second, third] = all.each_ref().map(|text| text.rsplit(';').next().unwrap());
        assert!(first == second && second == third, "{all:?}");
        let [worker, ..] = all;
        worker
    };
    timeout(PATIENCE, all).await.expect("a refusal in time")
}

fn has(text: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
}

/// An address of the server with something before the host.
fn with_user(nats: &Nats, user: &str) -> Connection {
    Connection::new(nats.url().replace("nats://", &format!("nats://{user}@")))
}

/// Users are allowed exactly what docs/nats.md says that they need.
#[tokio::test(flavor = "multi_thread")]
async fn users_and_passwords() {
    let config = |_: &Path| {
        let all = r#"["tapir.>", "$JS.API.>", "$KV.tapir-cell.>", "_INBOX.>"]"#;
        let talk = r#"["tapir.in.*", "$JS.API.STREAM.INFO.*",
            "$JS.API.STREAM.MSG.GET.tapir-answers", "$JS.API.DIRECT.GET.tapir-answers"]"#;
        format!(
            r#"authorization {{ users = [
                {{ user: works, password: "p@ss:word/", permissions: {{ publish: {all}, subscribe: {all} }} }}
                {{ user: talks, password: "talk", permissions: {{
                    publish: {talk}, subscribe: ["tapir.out.*", "_INBOX.>"] }} }}
                {{ user: nobody, password: "nothing", permissions: {{ publish: ["a"], subscribe: ["_INBOX.>"] }} }}
            ] }}"#
        )
    };
    let Some(nats) = Nats::configured(config) else { return };
    let server = with_user(&nats, "works:p%40ss%3Aword%2F");
    works(&nats, &server, &with_user(&nats, "talks:talk")).await;
    assert!(!nats.log().contains("Violation"), "{}", nats.log());

    for user in ["works:secret", "stranger:secret", "secret"] {
        let refusal = refusal(&with_user(&nats, user)).await;
        has(&refusal, &[&nats.url(), "authorization violation", "--nats-credentials"]);
        assert!(!refusal.contains("secret"), "{refusal}");
    }
    has(&refusal(&Connection::new(nats.url())).await, &["authorization violation"]);
    // Somebody who is let in, but not to JetStream, which otherwise would just be silent.
    let refusal = refusal(&with_user(&nats, "nobody:nothing")).await;
    has(&refusal, &["Permissions Violation", "$JS.API", "docs/nats.md"]);
    assert!(nats.log().contains("Violation"), "the log would show what the others lack");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens() {
    let config = |_: &Path| r#"authorization { token: "s3cret" }"#.to_owned();
    let Some(nats) = Nats::configured(config) else { return };
    let connection = with_user(&nats, "s3cret");
    works(&nats, &connection, &connection).await;
    has(&refusal(&with_user(&nats, "wrong")).await, &["authorization violation"]);
}

/// A claim that somebody signs of somebody, as `nsc` writes it.
fn signed(issuer: &KeyPair, subject: &KeyPair, name: &str, claim: Value) -> String {
    let encode = |value: Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let head = encode(json!({ "typ": "JWT", "alg": "ed25519-nkey" }));
    let body = encode(json!({
        "jti": name, "iat": 1_700_000_000, "iss": issuer.public_key(), "name": name,
        "sub": subject.public_key(), "nats": claim,
    }));
    let text = format!("{head}.{body}");
    let signature = BASE64URL_NOPAD.encode(&issuer.sign(text.as_bytes()).unwrap());
    format!("{text}.{signature}")
}

/// The file of a user of an account.
fn credentials(account: &KeyPair) -> String {
    let user = KeyPair::new_user();
    let claim = json!({
        "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2,
    });
    let (token, seed) = (signed(account, &user, "worker", claim), user.seed().unwrap());
    format!(
        "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_nsc() {
    let (operator, system) = (KeyPair::new_operator(), KeyPair::new_account());
    let (account, other) = (KeyPair::new_account(), KeyPair::new_account());
    let config = |folder: &Path| {
        let claim = json!({
            "system_account": system.public_key(), "type": "operator", "version": 2,
        });
        let operator_token = signed(&operator, &operator, "operator", claim);
        let of_account = |account: &KeyPair, storage: i64| {
            let limits = json!({
                "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1,
                "wildcards": true, "conn": -1, "leaf": -1, "mem_storage": storage,
                "disk_storage": storage, "streams": storage, "consumer": storage,
            });
            let claim = json!({ "limits": limits, "type": "account", "version": 2 });
            format!("{}: {}", account.public_key(), signed(&operator, account, "account", claim))
        };
        std::fs::write(folder.join("right.creds"), credentials(&account)).unwrap();
        std::fs::write(folder.join("other.creds"), credentials(&other)).unwrap();
        std::fs::write(folder.join("garbage.creds"), "garbage").unwrap();
        format!(
            "operator: {operator_token}\nsystem_account: {}\nresolver: MEMORY\n\
             resolver_preload: {{\n{}\n{}\n}}\n",
            system.public_key(),
            of_account(&system, 0),
            of_account(&account, -1),
        )
    };
    let Some(nats) = Nats::configured(config) else { return };
    let by = |name: &str| Connection {
        credentials: Some(nats.file(name)),
        ..Connection::new(nats.url())
    };
    works(&nats, &by("right.creds"), &by("right.creds")).await;
    // Of an account that the operator has not signed.
    let refused = refusal(&by("other.creds")).await;
    has(&refused, &[&nats.url(), "authorization violation", "--nats-credentials"]);
    has(&refusal(&Connection::new(nats.url())).await, &["authorization violation"]);
    has(&refusal(&by("garbage.creds")).await, &["garbage.creds", "JWT"]);
    has(&refusal(&by("missing.creds")).await, &["missing.creds", "No such file"]);
}

/// An authority, which signs certificates for hosts.
struct Authority(CertifiedIssuer<'static, TlsKey>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, TlsKey::generate().unwrap()).unwrap())
    }

    /// Writes NAME.pem and NAME.key for a host.
    fn sign(&self, folder: &Path, name: &str, host: &str) {
        let key = TlsKey::generate().unwrap();
        let params = CertificateParams::new([host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls() {
    let config = |folder: &Path| {
        let (right, wrong) = (Authority::new("right"), Authority::new("wrong"));
        std::fs::write(folder.join("right-ca.pem"), right.0.pem()).unwrap();
        std::fs::write(folder.join("wrong-ca.pem"), wrong.0.pem()).unwrap();
        std::fs::write(folder.join("empty.pem"), "nothing\n").unwrap();
        right.sign(folder, "server", "127.0.0.1");
        right.sign(folder, "worker", "worker");
        wrong.sign(folder, "stranger", "stranger");
        let file = |name: &str| folder.join(name).display().to_string();
        format!(
            r#"tls {{ cert_file: "{}", key_file: "{}", ca_file: "{}", verify: true }}
               authorization {{ user: works, password: "word" }}"#,
            file("server.pem"),
            file("server.key"),
            file("right-ca.pem"),
        )
    };
    let Some(nats) = Nats::configured(config) else { return };
    let file = |name: &str| -> PathBuf { nats.file(name) };
    let pair = |name: &str| Some((file(&format!("{name}.pem")), file(&format!("{name}.key"))));
    let right = Connection {
        authorities: Some(file("right-ca.pem")),
        certificate: pair("worker"),
        ..with_user(&nats, "works:word")
    };
    // The server may also be the one that asks for TLS.
    let tls = Connection { url: right.url.replace("nats://", "tls://"), ..right.clone() };
    works(&nats, &right, &tls).await;

    let trusts = |name: &str| Connection { authorities: Some(file(name)), ..right.clone() };
    let untrusted = refusal(&trusts("wrong-ca.pem")).await;
    has(
        &untrusted,
        &[&nats.url(), "invalid peer certificate: UnknownIssuer", "--nats-authorities"],
    );
    // The system's authorities have not signed it, either.
    let system = Connection { authorities: None, ..right.clone() };
    has(&refusal(&system).await, &["UnknownIssuer", "--nats-authorities"]);
    // Its certificate is for 127.0.0.1.
    let other = Connection { url: right.url.replace("127.0.0.1", "localhost"), ..right.clone() };
    has(&refusal(&other).await, &["not valid for", "localhost"]);
    has(&refusal(&trusts("missing.pem")).await, &["missing.pem", "No such file"]);
    has(&refusal(&trusts("empty.pem")).await, &["empty.pem", "CERTIFICATE"]);

    for certificate in [None, pair("stranger")] {
        let refused = refusal(&Connection { certificate, ..right.clone() }).await;
        has(&refused, &[&nats.url(), "--nats-certificate"]);
    }
    let swapped = Some((file("worker.pem"), file("worker.pem")));
    let refused = refusal(&Connection { certificate: swapped, ..right.clone() }).await;
    has(&refused, &["worker.pem", "PRIVATE KEY"]);
    // TLS alone does not let one in.
    let wrong = Connection { url: right.url.replace("word@", "wrong@"), ..right.clone() };
    has(&refusal(&wrong).await, &["authorization violation"]);
}

/// A server without TLS, where TLS is asked for: nothing is sent in the clear.
#[tokio::test(flavor = "multi_thread")]
async fn tls_where_there_is_none() {
    let Some(nats) = Nats::start(1) else { return };
    let plain = nats.connection().await;
    let tls = Connection::new(plain.url.replace("nats://", "tls://"));
    has(&refusal(&tls).await, &["does not speak TLS"]);
}
