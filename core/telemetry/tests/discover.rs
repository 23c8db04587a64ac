//! Finds pages of other processes, honest and hostile ones.

use hasten_telemetry::{Algorithm, PAGE_SIZE, PageError, PageHandle, ProcessError, discover, pages_of};
use std::ffi::CStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The example writer, ready, and ended when dropped.
struct Server(Child);

impl Server {
    fn start(workers: u32) -> Self {
        let here = std::env::current_exe().unwrap();
        let writer = here.ancestors().nth(2).unwrap().join("examples/writer");
        assert!(writer.exists(), "cargo builds the example with the tests");
        let mut child = Command::new(writer)
            .arg(workers.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

fn page_of(pages: Vec<PageHandle>, pid: u32) -> Option<PageHandle> {
    pages.into_iter().find(|page| page.pids().any(|sharer| sharer == pid))
}

#[test]
fn finds_a_server_once_however_many_workers_share_its_page() {
    let server = Server::start(3);
    let pages = discover();
    let of_server = pages.iter().filter(|page| page.pids().any(|pid| pid == server.pid())).count();
    assert_eq!(of_server, 1);
    let page = page_of(pages, server.pid()).unwrap();
    assert_eq!(page.program, "writer");
    assert_eq!(page.processes[0].pid, server.pid());
    assert_eq!(page.processes[0].namespace_pid, server.pid());
    let snapshot = page.read().unwrap();
    assert_eq!((snapshot.program.as_str(), snapshot.creator_pid), ("writer", server.pid()));
    assert!(snapshot.uptime() < std::time::Duration::from_secs(600));
    assert_eq!(snapshot.break_even(Algorithm::Rsa2048Sign).unwrap().lanes, 4);
}

#[test]
fn a_server_started_by_another_has_a_page_of_its_own() {
    hasten_telemetry::init("tls");
    hasten_telemetry::start();
    let server = Server::start(1);
    let ours = page_of(discover(), std::process::id()).unwrap();
    let theirs = page_of(discover(), server.pid()).unwrap();
    assert_ne!(ours.inode, theirs.inode);
}

#[test]
fn a_page_can_be_read_after_its_processes_have_ended() {
    let server = Server::start(2);
    let page = page_of(discover(), server.pid()).unwrap();
    drop(server);
    let total = page.read().unwrap().total();
    // Two workers count turn 0 with 1 and 2 handshakes waiting.
    assert_eq!(total[Algorithm::X25519Derive].batched, 3);
    assert_eq!(total[Algorithm::Rsa2048Sign].scalar, 3);
}

#[test]
fn says_why_a_process_has_no_page() {
    let mut sleeper = Reaped(Command::new("sleep").arg("60").spawn().unwrap());
    let pid = sleeper.0.id();
    let error = (0..100)
        .map(|_| pages_of(pid).unwrap_err())
        // Between fork and exec the child is still a copy of this test.
        .find(|error| matches!(error, ProcessError::NotAccelerated { program, .. } if program == "sleep"))
        .expect("sleep is not accelerated");
    assert_eq!(error.to_string(), format!("process {pid} (sleep) is not accelerated"));
    assert!(error.fix().contains("hasten run -- sleep"), "{}", error.fix());
    sleeper.0.kill().unwrap();
    sleeper.0.wait().unwrap();
    assert!(matches!(pages_of(pid), Err(ProcessError::Gone { .. })));
}

/// Kills and reaps a child even when the test fails.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Maps a memfd with the page's name and these bytes, and inspects it.
fn read_forged(name: &CStr, bytes: &[u8]) -> Option<Result<(), PageError>> {
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::os::unix::fs::{FileExt, MetadataExt};
    // SAFETY: a fresh descriptor, owned by the File from here on.
    let file = unsafe { std::fs::File::from_raw_fd(libc::memfd_create(name.as_ptr(), 0)) };
    file.write_all_at(bytes, 0).unwrap();
    let inode = file.metadata().unwrap().ino();
    // SAFETY: a fresh mapping that nothing else refers to, removed below.
    let mapped = unsafe {
        libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    assert_ne!(mapped, libc::MAP_FAILED);
    let page = discover().into_iter().find(|page| page.inode == inode);
    // SAFETY: the mapping made above.
    unsafe { libc::munmap(mapped, 4096) };
    page.map(|page| page.read().map(drop))
}

#[test]
fn forged_pages_are_errors_and_other_memfds_are_passed_over() {
    let name = c"hasten-telemetry";
    let mut future = vec![0; PAGE_SIZE];
    future[..8].copy_from_slice(&hasten_telemetry::MAGIC.to_le_bytes());
    future[8] = 2;
    assert!(matches!(read_forged(name, &[]), Some(Err(PageError::TooShort { have: 0, .. }))));
    assert!(matches!(read_forged(name, b"nonsense"), Some(Err(PageError::NotAPage))));
    assert!(matches!(read_forged(name, &future), Some(Err(PageError::WrongVersion { found: 2 }))));
    assert!(read_forged(c"something-else", &future).is_none());
}
