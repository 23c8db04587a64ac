//! Every way to start Node.js ends up served from the cache.

use crate::app::{App, RELEASES, outcome};

#[test]
fn node_on_every_release() {
    for release in RELEASES {
        let app = App::on(release);
        let output = app.same_and_served(&[app.node(), "app.js", "a", "b c"]);
        assert_eq!(output, "good day, app a b c\n", "{release}");
    }
}

#[test]
fn a_script_with_an_interpreter_line() {
    assert_eq!(App::new().same_and_served(&["./app.js", "x"]), "good day, app x\n");
}

#[test]
fn by_way_of_env_a_shell_and_make() {
    let app = App::new();
    app.write("Makefile", "start:\n\t@node app.js made\n");
    for (words, output) in [
        (&["env", "A=1", "node", "app.js"][..], "good day, app\n"),
        (&["sh", "-c", "node app.js; node app.js again"], "good day, app\ngood day, app again\n"),
        (&["make", "--silent"], "good day, app made\n"),
    ] {
        assert_eq!(app.same_and_served(words), output);
    }
}

#[test]
fn npm_start_and_npx() {
    let app = App::new();
    let output = app.same_and_served(&["npm", "start", "--silent"]);
    assert!(output.contains("good day, app from npm"), "{output}");
    let output = app.same_and_served(&["npx", "greeting"]);
    assert_eq!(output, "good day from npx\n");
}

#[test]
fn workers_of_a_cluster_and_child_processes_inherit() {
    let app = App::new();
    let cluster = "const cluster = require('cluster');
        require('./lib');
        if (cluster.isPrimary) {
          for (let i = 0; i < 2; i++) cluster.fork();
          let codes = [];
          cluster.on('exit', (worker, code) => {
            codes.push(code);
            if (codes.length === 2) console.log(codes.join());
          });
        } else {
          process.exit(7);
        }";
    app.write("cluster.js", cluster);
    assert_eq!(app.same_and_served(&["node", "cluster.js"]), "7,7\n");
    let parent = "const { execFileSync, fork } = require('child_process');
        console.log(execFileSync(process.execPath, ['app.js', 'child'], { encoding: 'utf8' }).trim());
        fork('./app.js', ['forked']);";
    app.write("parent.js", parent);
    let words = ["node", "parent.js"];
    assert_eq!(app.same_and_served(&words), "good day, app child\ngood day, app forked\n");
    outcome(app.hasten(&words));
    assert_eq!(app.stats().len(), 3, "one line for each process");
}

#[test]
fn es_modules_and_scripts_without_a_file_are_not_disturbed() {
    let app = App::on(24);
    app.write(
        "main.mjs",
        "import lib from './lib/index.js';\nconsole.log(lib.greet(), import.meta.url.slice(-8));\n",
    );
    for words in
        [&["node", "main.mjs"][..], &["node", "-p", "require('./lib').greet()"], &["node", "--version"]]
    {
        let stock = outcome(app.stock(words));
        assert_eq!(stock.0, Some(0), "{stock:?}");
        for _ in 0..2 {
            assert_eq!(outcome(app.hasten(words)), stock, "{words:?}");
        }
    }
}
