//! Exit codes, messages and signals are the application's own.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use hasten_tests::subject::send;
use rustix::process::Signal;

use crate::app::{App, outcome};

#[test]
fn exit_codes_and_stack_traces() {
    let app = App::new();
    app.write("syntax.js", "require('./lib');\nrequire('./broken');\n");
    app.write("broken.js", "const ok = 1;\nconst = 2;\n");
    app.write("missing.js", "require('./lib');\nrequire('./not-there');\n");
    app.write("late.js", "require('./lib');\nprocess.on('exit', () => { process.exitCode = 9; });\n");
    app.write("rejected.js", "require('./lib');\nPromise.reject(new TypeError('no'));\n");
    for (script, code) in [("fail", 1), ("syntax", 1), ("missing", 1), ("late", 9), ("rejected", 1)] {
        let words = ["node", &format!("{script}.js")];
        let stock = outcome(app.stock(&words));
        assert_eq!(stock.0, Some(code), "{stock:?}");
        for start in 0..3 {
            assert_eq!(
                outcome(app.hasten(&words)),
                stock,
                "start {start} of {script} (left) and stock differ"
            );
        }
    }
    app.stats();
    // Failing programs are served from the cache, too.
    app.same_and_served(&["node", "fail.js"]);
}

#[test]
fn signals_end_it_as_they_end_any_node() {
    let app = App::new();
    app.write("wait.js", "require('./lib');\nconsole.log('ready');\nsetInterval(() => {}, 1000);\n");
    let handler = "require('./lib');\nprocess.on('SIGTERM', () => process.exit(5));\nconsole.log('ready');\n\
                   setInterval(() => {}, 1000);\n";
    app.write("handle.js", handler);
    let end = |mut command: Command, signal: Signal| {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        send(child.id(), signal);
        let status = child.wait().unwrap();
        (status.code(), status.signal())
    };
    for (script, signal, expected) in [
        ("wait.js", Signal::TERM, (None, Some(15))),
        ("wait.js", Signal::INT, (None, Some(2))),
        ("wait.js", Signal::KILL, (None, Some(9))),
        ("handle.js", Signal::TERM, (Some(5), None)),
    ] {
        let words = ["node", script];
        assert_eq!(end(app.stock(&words), signal), expected, "{script}");
        for _ in 0..2 {
            assert_eq!(end(app.hasten(&words), signal), expected, "{script}");
        }
    }
    // A process killed while it may have been writing leaves nothing that disturbs the next start.
    assert_eq!(app.same_and_served(&["node", "app.js"]), "good day, app\n");
}
