//! Clients that are slow, that leave, and that speak HTTP/2 over TLS.

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

use hasten_telemetry::Event;
use hasten_tests::footprint::Footprint;
use hasten_tests::http::Answer;
use hasten_tests::site::Site;
use hasten_tests::{Side, Subject, bodies, parallel, same_as_stock, tools};

const BODY: usize = 3_000_000;

fn site() -> Site {
    Site::new()
        .file("body.html", &bodies::page(BODY))
        .location("one", "gzip_comp_level 1;")
        .location("six", "gzip_comp_level 6; sendfile off;")
        .proxied("proxied", "proxy_buffering off; gzip_comp_level 5; gzip_buffers 2 4k;")
}

fn paths() -> [String; 3] {
    ["/one/body.html".into(), "/six/body.html".into(), format!("/proxied/chunked/{BODY}")]
}

/// Reads an answer a kilobyte at a time, after a pause during which the server must stall.
struct Slowly<R>(R);

impl<R: Read> Read for Slowly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        thread::sleep(Duration::from_micros(100));
        let length = buffer.len().min(1024);
        self.0.read(&mut buffer[..length])
    }
}

#[test]
fn slow_readers() {
    let (site, body) = (site(), bodies::page(BODY));
    same_as_stock(&site.spec(), |_| {
        let paths = paths();
        parallel::repeat(paths.len(), 1, |reader| {
            let answer = site.client().ask(&paths[reader]).unwrap();
            thread::sleep(Duration::from_millis(100));
            let mut slow = BufReader::with_capacity(1024, Slowly(answer));
            assert!(Answer::read(&mut slow).unwrap().plain().unwrap() == body, "{}", paths[reader]);
        });
    });
}

/// This many visitors leave in mid-body.
fn abort(site: &Site, visitors: usize) {
    let paths = paths();
    parallel::repeat(4, visitors / 4, |visitor| {
        let mut answer = site.client().ask(&paths[visitor % paths.len()]).unwrap();
        let mut some = vec![0; 100 + visitor * 991 % 30_000];
        answer.read_exact(&mut some).unwrap();
    });
}

/// nginx drops a request's memory without telling zlib. Anything a stream held elsewhere would leak.
#[test]
fn those_who_go_away_leave_nothing_behind() {
    const SLACK_KIB: u64 = 6 << 10;
    let site = site();
    let growth = |side| {
        let server = Subject::start(&site.spec(), side);
        abort(&site, 60);
        let before = server.idle();
        abort(&site, 400);
        let after: Footprint = server.idle();
        assert_eq!(after.descriptors, before.descriptors);
        let whole = site.client().get("/six/body.html").unwrap();
        assert!(whole.plain().unwrap() == bodies::page(BODY));
        server.finish();
        after.resident_kib.saturating_sub(before.resident_kib)
    };
    let (stock, accelerated) = (growth(Side::Stock), growth(Side::Accelerated));
    assert!(
        accelerated <= stock + SLACK_KIB,
        "grown by {accelerated} KiB, and the stock server by {stock} KiB"
    );
}

/// TLS and gzip in one process, each with its own library.
#[test]
fn http2_over_tls_with_both_accelerators() {
    let site = site().under("tls,gzip");
    let (lines, identity) = (site.lines(), site.identity());
    let http2 = format!("server {{ listen {{address}} ssl http2; server_name other.test; {identity} }}");
    let spec = site.spec().http_lines(&format!("{lines}\n{http2}"));
    let body = bodies::page(BODY);
    same_as_stock(&spec, |server| {
        let url = |path: &str| format!("https://localhost:{}{path}", server.address().port());
        for path in paths() {
            let mut curl = Command::new(tools::tool("curl", "curl"));
            curl.args([
                "--silent",
                "--show-error",
                "--insecure",
                "--ipv4",
                "--http2",
                "--compressed",
                "--write-out",
                "%{stderr}%{http_version}",
            ]);
            let output = tools::run(curl.arg(url(&path)));
            assert!(output.stdout == body, "{path}: {} bytes", output.stdout.len());
            assert_eq!(String::from_utf8_lossy(&output.stderr), "2");
        }
        let mut h2load = Command::new(tools::tool("h2load", "nghttp2-client"));
        h2load
            .args(["-n60", "-c12", "-m5", "-H", "accept-encoding: gzip", "--connect-to"])
            .arg(server.address().to_string());
        h2load.arg(url("/one/body.html"));
        let report = String::from_utf8_lossy(&tools::run(&mut h2load).stdout).into_owned();
        assert!(report.contains("60 succeeded, 0 failed"), "{report}");
        if server.is_accelerated() {
            let counters = server.counters();
            assert!(counters[Event::DeflateStreams] >= 60 && counters[Event::HandshakeFinished] > 0);
        }
    });
}

/// One connection, many requests: leftovers of one answer in the process must not show in the next.
#[test]
fn many_answers_over_one_connection() {
    let lengths = [0, 1, 20, 5000, 70_000, 300, 400_000];
    let mut site = Site::new();
    for (number, length) in lengths.iter().enumerate() {
        site = site.location(&number.to_string(), &format!("gzip_comp_level {};", number + 1));
        site = site.file(&format!("{length}.html"), &bodies::page(*length));
    }
    same_as_stock(&site.spec(), |_| {
        let socket = UnixStream::connect(site.dir().join("socket")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut reader = BufReader::new(&socket);
        for round in 0..60 {
            let (location, length) = (round % 7, lengths[round * 5 % 7]);
            let head = "HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n";
            (&socket).write_all(format!("GET /{location}/{length}.html {head}").as_bytes()).unwrap();
            let answer = Answer::read(&mut reader).unwrap();
            assert!(answer.plain().unwrap() == bodies::page(length), "/{location}/{length}.html");
        }
    });
}
