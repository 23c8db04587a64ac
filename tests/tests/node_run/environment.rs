//! The user's settings stay, and a lack of what the plugin wants stops nothing.

use hasten_tests::product;

use crate::app::{App, outcome};

const SHOW: &str =
    "require('./lib');\nconsole.log(process.title, globalThis.before, process.execArgv.join());\n";

#[test]
fn the_users_own_node_options_are_kept_as_they_are() {
    let app = App::new();
    app.write("with space/before.js", "globalThis.before = (globalThis.before ?? 0) + 1;\n");
    app.write("show.js", SHOW);
    let options = r#"--title="my title"   --require "./with space/before.js""#;
    let run = |mut command: std::process::Command| {
        outcome({
            command.env("NODE_OPTIONS", options);
            command
        })
    };
    let words = ["node", "show.js"];
    let stock = run(app.stock(&words));
    assert_eq!(stock.1, "my title 1 \n");
    for _ in 0..3 {
        assert_eq!(run(app.hasten(&words)), stock);
        app.give_credit();
    }
    assert!(app.hits() > 0, "a module that the user preloads is no reason not to serve");
    let show = ["sh", "-c", r#"printf %s "$NODE_OPTIONS""#];
    let seen = run(app.hasten(&show)).1;
    assert!(seen.starts_with("--require /") || seen.starts_with("--require \"/"), "{seen}");
    assert!(
        seen.ends_with(&format!("/node/register.js {options}"))
            || seen.ends_with(&format!("/node/register.js\" {options}")),
        "{seen}"
    );
}

#[test]
fn broken_node_options_are_nodes_to_complain_about() {
    let app = App::new();
    for options in [r#"--title="unterminated"#, "--no-such-option"] {
        let run = |mut command: std::process::Command| {
            outcome({
                command.env("NODE_OPTIONS", options);
                command
            })
        };
        let stock = run(app.stock(&["node", "app.js"]));
        assert_eq!(stock.0, Some(9), "{stock:?}");
        assert_eq!(run(app.hasten(&["node", "app.js"])), stock, "{options}");
    }
}

#[test]
fn run_inside_run_loads_it_once() {
    let app = App::new();
    let hasten = product::hasten().to_str().unwrap();
    let count = "console.log(process.env.NODE_OPTIONS.split('register.js').length - 1)";
    let words = [hasten, "run", "-q", "--only", "node", "--", "node", "-e", count];
    assert_eq!(outcome(app.hasten(&words)), (Some(0), "1\n".into(), String::new()));
    let without = [hasten, "run", "-q", "--without", "node", "--", "node", "-p", "process.env.NODE_OPTIONS"];
    assert_eq!(outcome(app.hasten(&without)).1, "undefined\n");
}

#[test]
fn the_kill_switch_leaves_nothing_behind() {
    let app = App::new();
    for value in ["node", "all", "1", "tls,node", "NODE", "ALL", "TLS,Node", "tls node"] {
        let mut command = app.hasten(&["node", "-p", "process.env.NODE_OPTIONS"]);
        assert_eq!(
            outcome({
                command.env("HASTEN_DISABLE", value);
                command
            })
            .1,
            "undefined\n",
            "{value}"
        );
        // Also if the variable was set by hand.
        let mut by_hand = app.hasten(&["sh", "-c", &format!("HASTEN_DISABLE='{value}' node app.js")]);
        by_hand.env_remove("HASTEN_DISABLE");
        assert_eq!(outcome(by_hand), (Some(0), "good day, app\n".into(), String::new()));
    }
    assert!(!app.path("../cache").exists(), "something was cached");
}

#[test]
fn a_home_that_cannot_be_written_is_no_reason_to_say_anything() {
    let app = App::new();
    // A method of making folders below /proc that never gives up must not stop the tests.
    let words = &["timeout", "--foreground", "60", "node", "app.js"];
    let stock = outcome(app.stock(words));
    // Nobody can write to /proc, and /dev/null is not a folder.
    for home in ["/proc/1", "/dev/null", "/no/such/home"] {
        let mut command = app.hasten(words);
        command.env("HOME", home).env_remove("HASTEN_CACHE_DIR").env_remove("HASTEN_RUNTIME_DIR");
        assert_eq!(outcome(command), stock, "{home}");
    }
    let mut command = app.hasten(words);
    command.env_remove("HOME").env_remove("HASTEN_CACHE_DIR").env_remove("HASTEN_RUNTIME_DIR");
    assert_eq!(outcome(command), stock, "without HOME");
}

#[test]
fn settings_of_the_file_reach_it() {
    let app = App::new();
    app.write("hasten.toml", "[node]\ncache = 'off'\n");
    for _ in 0..2 {
        assert_eq!(outcome(app.hasten(&["node", "app.js"])).1, "good day, app\n");
    }
    assert_eq!(app.hits(), 0);
    assert!(!app.path("../cache/node").exists());
}

#[test]
fn advice_reaches_v8_and_the_users_own_option_wins() {
    let app = App::new();
    let advice = r#"{"schema":1,"advice":[{"title":"t","node_options":["--max-old-space-size=128","--max-semi-space-size=2"]}]}"#;
    app.write("advice.json", advice);
    // The heap's limit is the old space and three semi-spaces.
    let show = "console.log(require('v8').getHeapStatistics().heap_size_limit / 1048576)";
    let run = |node_arguments: &[&str]| {
        let mut command = std::process::Command::new(product::hasten());
        command.args(["run", "-q", "--only", "node", "--apply-gc-advice", "advice.json", "--", app.node()]);
        command.args(node_arguments).args(["-e", show]).current_dir(app.path(""));
        hasten_tests::program::without_library(&mut command);
        outcome({
            command.env_remove("NODE_OPTIONS");
            command
        })
        .1
    };
    assert_eq!(run(&[]), "134\n");
    assert_eq!(run(&["--max-old-space-size=256"]), "262\n");
    assert_eq!(run(&["--max-old-space-size=256", "--max-semi-space-size=4"]), "268\n");
}
