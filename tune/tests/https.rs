//! The built-in driver with a service that has a self-made certificate for another name.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use hasten_tune::load::{Load, LoadResult};

const SERVER: &str = r#"
import http.server, ssl, sys
class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"hello\n")
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
        openssl.args(["-subj", "/CN=elsewhere.example", "-days", "1", "-keyout"]).arg(&key);
        let made = openssl.arg("-out").arg(&certificate).stderr(Stdio::null()).status();
        assert!(made.unwrap().success());
        let mut python = Command::new("python3");
        python.args(["-c", SERVER]).arg(certificate).arg(key).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = python.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap() }
    }

    fn drive(&self, scheme: &str, path: &str) -> LoadResult {
        let url = format!("{scheme}://127.0.0.1:{}{path}", self.port);
        let load = Load::builtin(&url, 2, Duration::from_millis(500)).unwrap();
        load.run(Instant::now() + Duration::from_secs(60), &AtomicBool::new(false)).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_certificate_that_nobody_has_signed_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let found = server.drive("https", "/");
    assert!(found.requests.is_some_and(|requests| requests > 0.0), "{found:?}");
    assert_eq!((found.failed, found.failures.len()), (0, 0), "{found:?}");
    let found = server.drive("https", "/nowhere");
    assert!(found.requests == Some(0.0) && found.failed > 0, "{found:?}");
    assert!(found.failures[0].ends_with("status 404"), "{found:?}");
    // TLS was really spoken: without it there is no answer.
    let found = server.drive("http", "/");
    assert!(found.requests == Some(0.0) && found.failed > 0, "{found:?}");
}
