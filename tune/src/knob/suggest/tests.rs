use super::*;
use std::fs;
use std::path::Path;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            let path = folder.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

fn brief(findings: &[Finding]) -> Vec<(String, Option<usize>, &str)> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    findings.iter().map(|found| (name(&found.file), found.number, found.line.as_str())).collect()
}

#[test]
fn nginx_is_read_with_its_includes_and_told_line_by_line() {
    let folder = Folder::new(&[
        (
            "nginx.conf",
            "# all of it\nworker_processes 1;\nevents { }\nhttp {\n  log_format x '{ \"a\": $uri; }';\n  \
             gzip on; gzip_comp_level\n 9;\n  include sites/*.conf;\n  access_log off;\n}\n",
        ),
        (
            "sites/a.conf",
            "upstream app { server 127.0.0.1:1; }\nserver {\n  listen 443 ssl;\n  root /srv/${host};\n  \
             access_log \"/var/log/a.log\" x;\n  keepalive_requests 100;\n}\n",
        ),
        ("sites/.hidden.conf", "ssl_session_cache shared:x:1m;\n"),
    ]);
    let arguments = ["-c".to_owned(), folder.path("nginx.conf")];
    let found = nginx::suggest(&arguments, 4);
    let (main, site) = ("nginx.conf".to_owned(), "a.conf".to_owned());
    assert_eq!(
        brief(&found),
        [
            (main.clone(), Some(2), "worker_processes auto;"),
            (main.clone(), None, "ssl_session_cache shared:SSL:10m;"),
            (main.clone(), Some(6), "gzip_comp_level 4;"),
            (main.clone(), None, "sendfile on; tcp_nopush on;"),
            (site.clone(), Some(5), "access_log /var/log/a.log x buffer=64k flush=5s;"),
            (site.clone(), Some(6), "keepalive_requests 1000;"),
            (
                site,
                Some(1),
                "keepalive 32;  # and in the location: proxy_http_version 1.1; proxy_set_header Connection \"\";"
            ),
            (main, None, "open_file_cache max=10000 inactive=60s;"),
        ]
    );
    let shown = Suggestion::from(found[4].clone());
    assert_eq!(shown.text, "change line 5, in `server`");
    assert!(shown.file.ends_with("/sites/a.conf:5"), "{}", shown.file);
    assert_eq!(Suggestion::from(found[1].clone()).text, "add in `http`");
}

#[test]
fn an_nginx_in_order_is_left_alone() {
    let folder = Folder::new(&[(
        "nginx.conf",
        "worker_processes auto; events {} http { sendfile on; tcp_nopush on; gzip on; gzip_comp_level 4;\n\
         ssl_session_cache shared:SSL:10m; open_file_cache max=100; access_log off; server { listen 443 ssl reuseport; root /x; } }",
    )]);
    assert_eq!(nginx::suggest(&["-c".into(), folder.path("nginx.conf")], 4), []);
    assert_eq!(nginx::suggest(&["-c".into(), folder.path("missing.conf")], 4), []);
    // `-g` counts, too.
    let one = Folder::new(&[("n.conf", "events {} http { access_log off; }")]);
    let arguments = |global: &str| ["-c".to_owned(), one.path("n.conf"), "-g".to_owned(), global.to_owned()];
    assert_eq!(nginx::suggest(&arguments("worker_processes auto;"), 4), []);
    assert_eq!(nginx::suggest(&arguments("daemon off;"), 4).len(), 1);
}

#[test]
fn a_file_that_includes_itself_ends() {
    let folder =
        Folder::new(&[("n.conf", "worker_processes auto; include n.conf; http { access_log off; }")]);
    assert_eq!(nginx::suggest(&["-c".into(), folder.path("n.conf")], 4), []);
}

#[test]
fn haproxy_is_told_what_its_lines_cost() {
    let folder = Folder::new(&[(
        "haproxy.cfg",
        "global\n  nbthread 1 # once\n  tune.bufsize 65536\ndefaults\n  mode http\n  option httpclose\n  http-reuse never\n\
         frontend web\n  bind :443 ssl crt /x.pem\n",
    )]);
    let found = haproxy::suggest(&["-W".into(), "-f".into(), folder.path("haproxy.cfg")], 2);
    let file = "haproxy.cfg".to_owned();
    assert_eq!(
        brief(&found),
        [
            (file.clone(), Some(2), "nbthread 2"),
            (file.clone(), None, "tune.ssl.cachesize 100000"),
            (file.clone(), Some(6), "option http-keep-alive"),
            (file.clone(), Some(7), "http-reuse safe"),
            (file, Some(3), "tune.bufsize 16384"),
        ]
    );
    assert_eq!(found[2].within, "defaults");
    assert_eq!(haproxy::suggest(&["-v".into()], 2), []);
}
