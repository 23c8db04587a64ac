//! The command must not notice `hasten run`: what it inherits is compared with a start without `hasten`.

mod support;

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::Place;

/// A shell script's output when run directly, and when run by `hasten run -q`, under the same circumstances.
///
/// `$HASTEN` is empty or the wrapper.
fn both(place: &Place, script: &str) -> (String, String) {
    let run = |wrapper: &str| {
        let mut shell = Command::new("bash");
        shell
            .args(["-c", script])
            .env("HASTEN", wrapper)
            .env("HASTEN_LIBDIR", place.path(""))
            .env("HASTEN_DISABLE", "all");
        let output = shell.current_dir(place.path("")).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), output.status)
    };
    (run(""), run(&format!("{} run -q --", support::HASTEN)))
}

fn assert_same(script: &str) -> String {
    let place = Place::new();
    let (plain, wrapped) = both(&place, script);
    assert_eq!(plain, wrapped, "{script}");
    plain
}

#[test]
fn exit_codes_pass() {
    for code in [0, 1, 2, 42, 126, 127, 255] {
        assert_same(&format!("$HASTEN sh -c 'exit {code}'"));
    }
}

#[test]
fn death_by_signal_passes() {
    for signal in ["TERM", "KILL", "SEGV", "PIPE"] {
        let status = assert_same(&format!("exec $HASTEN sh -c 'kill -{signal} $$; sleep 5'"));
        assert!(status.contains("signal"), "{status}");
    }
}

#[test]
fn ignored_signals_and_default_actions_pass() {
    let signals = "grep -E '^Sig(Ign|Blk|Cgt)' /proc/self/status";
    assert_same(&format!("$HASTEN {signals}"));
    let ignored = assert_same(&format!("trap '' PIPE HUP USR1; $HASTEN {signals}"));
    let mask = ignored.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    let mask = u64::from_str_radix(mask, 16).unwrap();
    let expected = (1 << 0) | (1 << 9) | (1 << 12);
    assert_eq!(mask & expected, expected, "SIGHUP, SIGUSR1 and SIGPIPE stay ignored: {mask:x}");
}

#[test]
fn the_signal_mask_passes() {
    let mask = r#"python3 -c '
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGPIPE])
os.execvp(sys.argv[1], sys.argv[1:])' $HASTEN grep SigBlk /proc/self/status"#;
    let blocked = assert_same(mask);
    assert!(blocked.contains("SigBlk:\t0000000000001800"), "{blocked}");
}

#[test]
fn standard_streams_pass_even_if_closed() {
    for redirection in ["", "0<&-", "1>&2 2>/dev/null", "0<&- 2>&-", "3</dev/null"] {
        assert_same(&format!(
            "$HASTEN bash -c 'for fd in 0 1 2 3; do [ -e /proc/$$/fd/$fd ] && echo $fd; done' {redirection}"
        ));
    }
    assert_same("echo input | $HASTEN cat");
    assert_same("yes | $HASTEN head -n 3");
    assert_same("$HASTEN sh -c 'echo error >&2' 2>&1");
}

#[test]
fn environment_arguments_and_working_directory_pass() {
    assert_same("env -i HASTEN_DISABLE=all A=1 EMPTY= 'B=two words' PATH=\"$PATH\" $HASTEN env");
    assert_same("$HASTEN printf '<%s>' '' 'two words' \"it's\" '*' -- --help -n");
    assert_same("$HASTEN pwd; $HASTEN sh -c 'echo $0' a b; $HASTEN sh -c 'umask'");
    assert_same("cd /; $HASTEN pwd");
}

#[test]
fn a_script_without_an_interpreter_line_is_run_by_the_shell() {
    let place = Place::new();
    place.write("plain", "echo from the shell; exit 3\n");
    std::fs::set_permissions(place.path("plain"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    place.run(&["run", "-q", "--", "./plain"]).code(3).stdout("from the shell\n");
}

#[test]
fn it_is_the_same_process() {
    let place = Place::new();
    let mut child =
        place.hasten(&["run", "-q", "--", "sh", "-c", "echo $$"]).stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    assert!(child.wait().unwrap().success());
    let output = std::io::read_to_string(child.stdout.unwrap()).unwrap();
    assert_eq!(output.trim(), pid.to_string());
}

#[test]
fn a_signal_sent_to_hasten_reaches_the_command() {
    let place = Place::new();
    let script = "trap 'echo got it; exit 9' USR1; echo ready; for i in $(seq 3000); do sleep 0.01; done";
    let command = &mut place.hasten(&["run", "-q", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    assert_eq!(line, "ready\n");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-USR1", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(9));
    assert_eq!(std::io::read_to_string(output).unwrap(), "got it\n");
}

#[test]
fn the_terminal_passes() {
    if Command::new("script").arg("--version").output().is_err() {
        println!("skipped: script is not installed (apt-get install bsdutils)");
        return;
    }
    let tty = |wrapper: &str| {
        let inner = format!(
            "{wrapper} sh -c 'test -t 0 && test -t 1 && test -t 2 && stty size && ps -o tpgid= -p $$ >/dev/null; echo $?'"
        );
        let mut script = Command::new("script");
        script.args(["-qec", &inner, "/dev/null"]).env("HASTEN_DISABLE", "all").stdin(Stdio::null());
        String::from_utf8(script.output().unwrap().stdout).unwrap()
    };
    let plain = tty("");
    assert!(plain.ends_with("0\r\n"), "{plain:?}");
    assert_eq!(tty(&format!("{} run -q --", support::HASTEN)), plain);
}

#[test]
fn the_plan_may_go_to_a_pipe_that_nobody_reads() {
    let place = Place::new();
    let script =
        "{ HASTEN_DISABLE=tls $HASTEN run -- sh -c 'echo started'; echo $?; } 2> >(exec 0<&-; sleep 0.2)";
    let output = Command::new("bash")
        .args(["-c", script])
        .env("HASTEN", support::HASTEN)
        .current_dir(place.path(""))
        .output();
    assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), "started\n0\n");
}

#[test]
fn reports_end_quietly_when_their_reader_does() {
    for arguments in ["check", "check --json", "--help", "completions bash", "man"] {
        let script = format!("$HASTEN {arguments} | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}");
        for _ in 0..3 {
            let output =
                Command::new("bash").args(["-c", &script]).env("HASTEN", support::HASTEN).output().unwrap();
            assert!(output.stderr.is_empty(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
            // Ended by the signal, or finished before the reader.
            let status = String::from_utf8(output.stdout).unwrap();
            assert!(["141\n", "0\n"].contains(&status.as_str()), "{arguments}: {status}");
        }
    }
}

#[test]
fn input_is_not_read_ahead() {
    let place = Place::new();
    let mut child = place
        .hasten(&["run", "-q", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let data = vec![b'x'; 1 << 20];
    let mut stdin = child.stdin.take().unwrap();
    let sent = data.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(output.stdout, data);
}

#[test]
fn it_costs_little() {
    let place = Place::new();
    let time = |arguments: &[&str]| {
        let start = Instant::now();
        assert!(place.hasten(arguments).output().unwrap().status.success());
        start.elapsed()
    };
    // In turn, because a busy machine slows both, and the best of each, because it does so only at times.
    let [mut run, mut nothing] = [Duration::MAX; 2];
    for _ in 0..10 {
        run = run.min(time(&["run", "-q", "--", "true"]));
        nothing = nothing.min(time(&["--version"]));
    }
    // Some two to four times, unoptimised builds included.
    assert!(run < 20 * nothing, "{run:?} against {nothing:?}");
}
