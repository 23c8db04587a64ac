//! Cleans up after this process if it is killed and cannot do so itself.
//!
//! `kill -9` runs no destructor, and the kernel's signal at a parent's death would reach nginx's master but not its
//! workers. So beside each server waits a shell with a pipe that nobody else holds open. When the pipe ends without a
//! word, the shell ends the server's process group and removes its folder.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The pipe names the group to end; a group asked to end has five seconds for it.
const SCRIPT: &str = r#"
group=
while read -r line; do group=$line; done
if [ -n "$group" ]; then
    kill -s TERM -- "-$group"
    tries=0
    while kill -s 0 -- "-$group" && [ "$tries" -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
    kill -s KILL -- "-$group"
fi
rm -rf -- "$1"
"#;

/// Waits until it is dropped, or this process ends.
#[derive(Debug)]
pub(crate) struct Keeper(Option<Child>);

impl Keeper {
    /// Without a shell nobody cleans up, but that is no reason not to measure.
    pub(crate) fn of(folder: &Path) -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "hasten-keeper"]).arg(folder).current_dir("/");
        // Killing this process with its group leaves the keeper alive, and so does Ctrl-C.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().ok())
    }

    /// Also ends the processes of the group led by `leader`.
    pub(crate) fn watch(&mut self, leader: u32) {
        if let Some(pipe) = self.0.as_mut().and_then(|keeper| keeper.stdin.as_mut()) {
            let _ = writeln!(pipe, "{leader}");
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(keeper) = &mut self.0 {
            // Before its pipe ends.
            let _ = keeper.kill();
            let _ = keeper.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    fn until(mut condition: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !condition() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it never happened");
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn when_the_pipe_ends_the_group_and_the_folder_are_gone() {
        let folder = tempfile::tempdir().unwrap().keep();
        let mut group = Command::new("sh");
        let mut leader = group.args(["-c", "sleep 600 & sleep 600"]).process_group(0).spawn().unwrap();
        let mut keeper = Keeper::of(&folder);
        keeper.watch(leader.id());
        // As the kernel does when the owner is killed.
        drop(keeper.0.as_mut().and_then(|keeper| keeper.stdin.take()));
        leader.wait().unwrap();
        until(|| !folder.exists());
    }

    #[test]
    fn whoever_cleans_up_himself_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        drop(Keeper::of(folder.path()));
        thread::sleep(Duration::from_millis(100));
        assert!(fs::metadata(folder.path()).is_ok());
    }
}
