use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::load::Load;

/// The service's present behaviour.
#[derive(Clone)]
struct Manner {
    status: &'static str,
    kind: &'static str,
    body: &'static str,
    gzip: bool,
}

const STOCK: Manner = Manner {
    status: "200 OK",
    kind: "application/json",
    body: "{\"hello\": \"world\", \"n\": COUNT}",
    gzip: true,
};

/// A service that counts its answers, and the switch for its behaviour.
fn serve() -> (Target, Arc<Mutex<Manner>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::new(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let manner = Arc::new(Mutex::new(STOCK));
    let (shared, count) = (Arc::clone(&manner), Arc::new(AtomicUsize::new(10)));
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let (shared, count) = (Arc::clone(&shared), Arc::clone(&count));
            thread::spawn(move || answer(socket, &shared, &count));
        }
    });
    (target, manner)
}

fn answer(mut socket: std::net::TcpStream, manner: &Mutex<Manner>, count: &AtomicUsize) {
    let mut request = Vec::new();
    let mut byte = [0];
    while let Ok(1) = socket.read(&mut byte) {
        request.push(byte[0]);
        if !request.ends_with(b"\r\n\r\n") {
            continue;
        }
        let manner = manner.lock().unwrap().clone();
        let body =
            manner.body.replace("COUNT", &count.fetch_add(1, Ordering::Relaxed).to_string()).into_bytes();
        let gzip = manner.gzip && String::from_utf8_lossy(&request).contains("Accept-Encoding: gzip");
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&body).unwrap();
        let (body, encoding) =
            if gzip { (encoder.finish().unwrap(), "Content-Encoding: gzip\r\n") } else { (body, "") };
        let (status, kind) = (manner.status, manner.kind);
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{encoding}Content-Length: {}\r\n\r\n",
            body.len()
        );
        if socket.write_all(&[head.into_bytes(), body].concat()).is_err() {
            return;
        }
        request.clear();
    }
}

#[test]
fn a_service_that_answers_as_before_passes_and_any_other_is_named() {
    let (target, manner) = serve();
    let guard = Guard::learn(std::slice::from_ref(&target)).unwrap();
    let described = guard.describe().join("");
    assert!(
        described.contains("status 200, application/json") && described.contains("1 volatile"),
        "{described}"
    );
    guard.check().unwrap();
    let changes = [
        (Manner { body: "{\"hello\": \"word\", \"n\": COUNT}", ..STOCK }, "world"),
        (Manner { body: "{\"hello\": \"world\", \"n\": null}", ..STOCK }, "null"),
        (Manner { status: "500 Oops", ..STOCK }, "status 500, was 200"),
        (Manner { kind: "text/html", ..STOCK }, "content-type is text/html, was application/json"),
        (Manner { gzip: false, ..STOCK }, "content-encoding is missing, was gzip"),
    ];
    for (change, what) in changes {
        *manner.lock().unwrap() = change;
        let Err(Disqualified::ChangedAnswer { what: found }) = guard.check() else {
            panic!("{what} was taken")
        };
        assert!(found.contains(what) && found.contains(&target.to_string()), "{found}");
    }
    *manner.lock().unwrap() = STOCK;
    guard.check().unwrap();
}

#[test]
fn another_start_may_show_more_to_be_volatile() {
    let (target, manner) = serve();
    *manner.lock().unwrap() = Manner { body: "{\"pid\": 17}", ..STOCK };
    let mut guard = Guard::learn(&[target]).unwrap();
    *manner.lock().unwrap() = Manner { body: "{\"pid\": 18}", ..STOCK };
    assert!(guard.check().is_err());
    guard.learn_more().unwrap();
    guard.check().unwrap();
    *manner.lock().unwrap() = Manner { body: "{\"pid\": \"x\"}", ..STOCK };
    assert!(guard.check().is_err());
}

#[test]
fn without_targets_there_is_nothing_to_compare_and_a_silent_service_is_no_baseline() {
    Guard::learn(&[]).unwrap().check().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = Guard::learn(&[Target::new(&format!("http://127.0.0.1:{port}/")).unwrap()]).unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn the_built_in_driver_counts_what_is_right_and_names_what_is_not() {
    let (target, manner) = serve();
    let load = Load::builtin(&target.to_string(), 3, Duration::from_millis(300)).unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let seen = load.run(limit, &stop).unwrap();
    assert!(seen.requests.unwrap() >= 3.0 && seen.failed == 0 && seen.seconds >= 0.3, "{seen:?}");
    assert!(seen.latency.unwrap().p99.unwrap() > 0.0, "{seen:?}");
    *manner.lock().unwrap() = Manner { status: "503 No", ..STOCK };
    let seen = load.run(limit, &stop).unwrap();
    assert!(
        seen.requests == Some(0.0) && seen.failed >= 3 && seen.failures[0].contains("status 503"),
        "{seen:?}"
    );
    stop.store(true, Ordering::Relaxed);
    assert!(matches!(load.run(limit, &stop), Err(crate::load::LoadError::Stopped)));
}
