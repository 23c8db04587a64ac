//! All of this under valgrind's memcheck: neither the engines nor the simulated libraries touch memory that is not
//! theirs, whatever the fault. Leaks are not checked: memory that a device may still write to is left to it.

use std::process::Command;

/// The other tests have their turn in the default build.
const FILTER: &[&str] = if cfg!(feature = "unused-engines") { &["copies::", "hand_out::"] } else { &[] };

const NAME: &str = "memory::nothing_is_touched_that_should_not_be";

#[test]
fn nothing_is_touched_that_should_not_be() {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=9", "--leak-check=no", "--num-callers=20"]);
    command.arg(program).args(["--test-threads", "1", "--skip", NAME]).args(FILTER);
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("valgrind: {error}: run `apt-get install valgrind` as root"));
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}\n{}", output.status, said.join("\n"));
    assert!(said[0].contains("test result: ok. "), "{}", said[0]);
}
