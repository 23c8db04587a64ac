//! Changes outside the process, on a machine that is a folder and a script.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hasten_tune::journal::{Held, Journal, Replayed, System, Undone, replay_within};
use hasten_tune::service::{Unit, UnitError};
use tempfile::TempDir;

const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const SWAP: &str = "/proc/sys/vm/swappiness";

/// It answers from files: `active` lists the running units, `log` records the questions.
const SYSTEMCTL: &str = r#"#!/bin/sh
here=$(dirname "$0")
for unit; do :; done
echo "$*" >>"$here/log"
case "$1" in
is-active) test -e "$here/active.$unit" ;;
stop) rm "$here/active.$unit" ;;
start) test ! -e "$here/broken" || { echo "no such luck" >&2; exit 1; }; touch "$here/active.$unit" ;;
esac
"#;

struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for (path, text) in [(THP, "always [madvise] never\n"), (SWAP, "60\n")] {
            let path = machine.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let systemctl = machine.path("systemctl");
        fs::write(&systemctl, SYSTEMCTL).unwrap();
        fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(machine.path("journal")).unwrap();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name.trim_start_matches('/'))
    }

    fn system(&self) -> System {
        System::at(self.0.path(), &self.path("systemctl"))
    }

    fn journal(&self) -> Journal {
        Journal::within(&self.path("journal")).unwrap()
    }

    fn setting(&self, path: &str) -> String {
        self.system().setting(path).unwrap()
    }

    fn replay(&self) -> Vec<String> {
        replay_within(&self.path("journal"), &self.system()).iter().map(ToString::to_string).collect()
    }

    /// As after the death of its owner: the file of a process that no longer exists.
    fn orphan(&self, journal: &Journal) {
        let text = fs::read_to_string(journal.path()).unwrap();
        let own = format!("\"pid\":{},", std::process::id());
        assert!(text.contains(&own), "{text}");
        fs::write(self.path("journal/4194305-1.jsonl"), text.replacen(&own, "\"pid\":4194305,", 1)).unwrap();
        fs::remove_file(journal.path()).unwrap();
    }

    fn is_clean(&self) -> bool {
        fs::read_dir(self.path("journal")).unwrap().next().is_none()
    }
}

#[test]
fn a_setting_is_noted_before_it_is_made_and_put_back() {
    let machine = Machine::new();
    let journal = machine.journal();
    let held = Held::set(&machine.system(), &journal, THP, "always").unwrap();
    assert_eq!(machine.setting(THP), "always");
    let note = fs::read_to_string(journal.path()).unwrap();
    assert!(note.contains(r#""before":"madvise","after":"always""#), "{note}");
    // Its owner lives, so nobody else undoes it.
    assert!(machine.replay().is_empty());
    assert_eq!(held.undo().unwrap(), Undone::Done(format!("{THP} is madvise again")));
    assert_eq!(machine.setting(THP), "madvise");
    assert!(machine.is_clean());
}

#[test]
fn what_is_dropped_is_put_back_and_others_stay_noted() {
    let machine = Machine::new();
    let journal = machine.journal();
    let first = Held::set(&machine.system(), &journal, SWAP, "10").unwrap();
    drop(Held::set(&machine.system(), &journal, THP, "never").unwrap());
    assert_eq!((machine.setting(THP).as_str(), machine.setting(SWAP).as_str()), ("madvise", "10"));
    assert!(!machine.is_clean());
    drop(first);
    assert!(machine.is_clean());
}

#[test]
fn the_next_one_undoes_in_reverse_order_what_a_dead_one_has_left() {
    let machine = Machine::new();
    let journal = machine.journal();
    // The same setting twice: only in reverse order does it end where it began.
    std::mem::forget(Held::set(&machine.system(), &journal, SWAP, "10").unwrap());
    std::mem::forget(Held::set(&machine.system(), &journal, SWAP, "20").unwrap());
    machine.orphan(&journal);
    assert_eq!(machine.replay(), [format!("{SWAP} is 10 again"), format!("{SWAP} is 60 again")]);
    assert_eq!(machine.setting(SWAP), "60");
    assert!(machine.is_clean() && machine.replay().is_empty());
}

#[test]
fn what_somebody_else_has_changed_meanwhile_is_left() {
    let machine = Machine::new();
    let journal = machine.journal();
    std::mem::forget(Held::set(&machine.system(), &journal, SWAP, "10").unwrap());
    fs::write(machine.path(SWAP), "33\n").unwrap();
    machine.orphan(&journal);
    let expected = format!(
        "left as it is: {SWAP} says 33 by now, which is neither the 10 of hasten nor the 60 from before"
    );
    assert_eq!(machine.replay(), [expected]);
    assert_eq!(machine.setting(SWAP), "33");
    assert!(machine.is_clean());
}

#[test]
fn what_cannot_be_undone_stays_in_the_journal() {
    let machine = Machine::new();
    fs::write(machine.path("active.x.service"), "").unwrap();
    let journal = machine.journal();
    std::mem::forget(Held::set(&machine.system(), &journal, SWAP, "10").unwrap());
    std::mem::forget(Held::stop(&machine.system(), &journal, "x.service").unwrap());
    machine.orphan(&journal);
    fs::write(machine.path("broken"), "").unwrap();
    let said = machine.replay();
    assert!(
        said[0].contains("x.service, which was active: `systemctl start x.service` failed: "),
        "{said:?}"
    );
    assert!(said[0].ends_with("no such luck"), "{said:?}");
    // Earlier changes wait.
    assert_eq!(machine.setting(SWAP), "10");
    fs::remove_file(machine.path("broken")).unwrap();
    assert_eq!(machine.replay(), ["x.service is started again".to_owned(), format!("{SWAP} is 60 again")]);
}

#[test]
fn a_note_that_was_not_finished_is_of_a_change_that_was_not_made() {
    let machine = Machine::new();
    let journal = machine.journal();
    std::mem::forget(Held::set(&machine.system(), &journal, SWAP, "10").unwrap());
    let whole = fs::read_to_string(journal.path()).unwrap();
    fs::write(journal.path(), format!("{whole}{{\"note\":{{\"id\":99,\"chan")).unwrap();
    machine.orphan(&journal);
    assert_eq!(machine.replay(), [format!("{SWAP} is 60 again")]);
}

#[test]
fn what_was_changed_before_the_system_was_started_anew_is_over() {
    let machine = Machine::new();
    let journal = machine.journal();
    std::mem::forget(Held::set(&machine.system(), &journal, SWAP, "10").unwrap());
    machine.orphan(&journal);
    let orphan = machine.path("journal/4194305-1.jsonl");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = fs::read_to_string(&orphan).unwrap();
    fs::write(&orphan, text.replace(boot.trim(), "another")).unwrap();
    assert!(machine.replay().is_empty());
    assert_eq!(machine.setting(SWAP), "10");
    assert!(machine.is_clean());
}

#[test]
fn a_unit_that_runs_is_stopped_only_if_that_is_allowed() {
    let machine = Machine::new();
    fs::write(machine.path("x.service"), "[Service]\nExecStart=/bin/x\n").unwrap();
    let unit = Unit::read("x", &[machine.path("")]).unwrap();
    let (system, journal) = (machine.system(), machine.journal());
    assert!(unit.take_over(&system, &journal, false).unwrap().is_none());
    fs::write(machine.path("active.x.service"), "").unwrap();
    assert!(matches!(unit.take_over(&system, &journal, false), Err(UnitError::Active { .. })));
    let held = unit.take_over(&system, &journal, true).unwrap().unwrap();
    assert!(!machine.path("active.x.service").exists());
    drop(held);
    assert!(machine.path("active.x.service").exists());
    assert!(machine.is_clean());
}

#[test]
fn a_machine_without_systemd_runs_no_units() {
    let machine = Machine::new();
    let system = System::at(machine.0.path(), Path::new("/nonexistent/systemctl"));
    assert!(!system.is_active("x.service").unwrap());
}

/// A process killed with a setting in place: this test again, by itself, in a process that is killed.
#[test]
fn a_process_that_is_killed_leaves_nothing_behind() {
    const FOLDER: &str = "JOURNAL_TEST_FOLDER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let root = PathBuf::from(folder);
        let system = System::at(&root, &root.join("systemctl"));
        let journal = Journal::within(&root.join("journal")).unwrap();
        let _held = Held::set(&system, &journal, SWAP, "10").unwrap();
        Command::new("kill").args(["-9", &std::process::id().to_string()]).status().unwrap();
        loop {
            std::thread::park();
        }
    }
    let machine = Machine::new();
    let name = "a_process_that_is_killed_leaves_nothing_behind";
    let mut child = Command::new(std::env::current_exe().unwrap());
    let killed = child.args(["--exact", name]).env(FOLDER, machine.0.path()).output().unwrap();
    assert!(!killed.status.success());
    assert_eq!(machine.setting(SWAP), "10");
    let replayed = replay_within(&machine.path("journal"), &machine.system());
    assert!(matches!(&replayed[..], [Replayed::Undone(_)]), "{replayed:?}");
    assert_eq!(machine.setting(SWAP), "60");
    assert!(machine.is_clean());
}
