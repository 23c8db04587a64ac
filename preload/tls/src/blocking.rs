//! What is about to block: functions in which a thread waits, or from which it does not return.
//!
//! Each runs after a look at whether this wait may last, and if so, after what
//! is suspended has been called in (`loans.rs`). Locks are in `locks.rs`, waits
//! that report connections in `epoll.rs` and `loans.rs`.

use core::ffi::{c_char, c_int, c_long, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicI32, AtomicPtr};

use hasten_hook::{By, Hook, Library, before};
use libc::{FILE, pollfd};

use crate::hooks::original;
use crate::openssl::Ssl;
use crate::runtime::{Runtime, SUSPENDED};
use crate::{fds, loans, slice};

pub(crate) use self::table::{BLOCKING, ONCE, TOUCHING};

/// The thread is about to block, or to end.
pub(crate) extern "C" fn before_blocking() {
    fds::next_moment();
    if let Some(runtime) = Runtime::existing()
        && runtime.has_suspended()
        && !runtime.is_inside()
        && !fds::is_vfork_child()
        && !slice::is_in_signal_handler(&runtime.native_stack())
    {
        runtime.call_in_all();
    }
}

/// A call that blocks if its descriptor does.
pub(crate) extern "C" fn before_connecting(fd: c_int) {
    // SAFETY: reads flags.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags >= 0 && flags & libc::O_NONBLOCK == 0 {
        before_blocking();
    }
}

/// A read of a stream blocks inside the C library, out of sight.
#[cold]
fn before_stream(stream: *mut FILE) {
    if stream.is_null() || !Runtime::existing().is_some_and(Runtime::has_suspended) {
        return;
    }
    let mut file = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the program's stream, of which the number is read; fstat writes what it succeeds for.
    let is_regular = unsafe {
        libc::fstat(libc::fileno(stream), file.as_mut_ptr()) == 0
            && file.assume_init().st_mode & libc::S_IFMT == libc::S_IFREG
    };
    if !is_regular {
        before_blocking();
    }
}

/// One character; most of them are in the stream's buffer.
extern "C" fn before_character(stream: *mut FILE) {
    /// The beginning of glibc's FILE, which is part of its ABI.
    #[repr(C)]
    struct Buffer {
        flags: c_int,
        next: *const u8,
        end: *const u8,
    }
    // SAFETY: null, or the program's stream.
    let is_there = unsafe { stream.cast::<Buffer>().as_ref().is_some_and(|buffer| buffer.next < buffer.end) };
    if !is_there {
        before_stream(stream);
    }
}

extern "C" fn before_scanning(stream: *mut FILE) {
    before_stream(stream);
}

/// The stream comes third.
extern "C" fn before_line(_: *mut c_void, _: usize, stream: *mut FILE) {
    before_stream(stream);
}

/// The stream comes fourth.
extern "C" fn before_block(_: *mut c_void, _: usize, _: usize, stream: *mut FILE) {
    before_stream(stream);
}

/// The stream comes fifth.
extern "C" fn before_checked_block(_: *mut c_void, _: usize, _: usize, _: usize, stream: *mut FILE) {
    before_stream(stream);
}

/// A lock on a file that somebody else may hold, or another mode of a connection.
extern "C" fn before_control(fd: c_int, command: c_int) {
    match command {
        libc::F_SETLKW | libc::F_OFD_SETLKW => before_blocking(),
        libc::F_SETFL => before_asking(fd),
        _ => {}
    }
}

/// For a child; its options come second.
extern "C" fn before_waiting_with(_: *mut c_int, options: c_int) {
    wait_for_child(options);
}

/// Third.
extern "C" fn before_waiting_for(_: libc::pid_t, _: *mut c_int, options: c_int) {
    wait_for_child(options);
}

/// Fourth.
extern "C" fn before_waiting_for_any(_: c_int, _: libc::id_t, _: *mut c_void, options: c_int) {
    wait_for_child(options);
}

fn wait_for_child(options: c_int) {
    if options & libc::WNOHANG == 0 {
        before_blocking();
    }
}

/// A FIFO has no other end yet, perhaps.
extern "C" fn before_opening(path: *const c_char, flags: c_int) {
    open_at(libc::AT_FDCWD, path, flags);
}

extern "C" fn before_opening_at(directory: c_int, path: *const c_char, flags: c_int) {
    open_at(directory, path, flags);
}

extern "C" fn before_opening_a_stream(path: *const c_char) {
    open_at(libc::AT_FDCWD, path, 0);
}

fn open_at(directory: c_int, path: *const c_char, flags: c_int) {
    if flags & libc::O_NONBLOCK != 0
        || path.is_null()
        || !Runtime::existing().is_some_and(Runtime::has_suspended)
    {
        return;
    }
    let mut file = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the program's path; the kernel writes what it succeeds for; errno is this thread's.
    let is_fifo = unsafe {
        let errno = *libc::__errno_location();
        let known = libc::syscall(libc::SYS_newfstatat, directory, path, file.as_mut_ptr(), 0) == 0;
        *libc::__errno_location() = errno;
        known && file.assume_init().st_mode & libc::S_IFMT == libc::S_IFIFO
    };
    if is_fifo {
        before_blocking();
    }
}

/// What runs once, in another thread at this moment perhaps.
extern "C" fn before_once(control: *const AtomicI32) {
    /// glibc's: 0 not begun, 1 under way, 2 done; above that the number of forks.
    const UNDER_WAY: i32 = 1;
    // SAFETY: null, or the program's variable.
    if unsafe { control.as_ref() }.is_some_and(|state| state.load(Acquire) & 3 == UNDER_WAY) {
        before_blocking();
    }
}

/// A system call made by hand. Few of them do not block, and few programs make any.
pub(crate) fn before_system_call(number: c_long, second: c_long) {
    if SUSPENDED.load(Relaxed) == 0 {
        return;
    }
    const HARMLESS: [c_long; 17] = [
        libc::SYS_gettid,
        libc::SYS_getpid,
        libc::SYS_tgkill,
        libc::SYS_getrandom,
        libc::SYS_getcpu,
        libc::SYS_gettimeofday,
        libc::SYS_clock_gettime,
        libc::SYS_memfd_create,
        libc::SYS_membarrier,
        libc::SYS_madvise,
        libc::SYS_prctl,
        libc::SYS_statx,
        libc::SYS_perf_event_open,
        libc::SYS_bpf,
        libc::SYS_pidfd_open,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_setaffinity,
    ];
    let wakes = number == libc::SYS_futex && second as c_int & 0x7f == libc::FUTEX_WAKE;
    if !wakes && !HARMLESS.contains(&number) {
        before_blocking();
    }
}

/// Something is asked of a connection by its descriptor: what lies unread, perhaps, until the client has answered.
extern "C" fn before_asking(fd: c_int) {
    fds::next_moment();
    if Runtime::existing().is_none_or(|runtime| !runtime.is_inside()) {
        loans::release_descriptor(fd);
    }
}

/// Reads that may block do not if there is something to read.
pub(crate) extern "C" fn before_reading(fd: c_int) {
    if !Runtime::existing().is_some_and(Runtime::has_suspended) {
        return;
    }
    if would_block(fd, libc::POLLIN) {
        before_blocking();
    }
}

fn would_block(fd: c_int, event: libc::c_short) -> bool {
    let mut ready = pollfd { fd, events: event, revents: 0 };
    // SAFETY: one descriptor in a local variable; asks without waiting.
    !fds::is_still_non_blocking(fd) && unsafe { original::poll.get()(&raw mut ready, 1, 0) == 0 }
}

/// Writes that would block.
pub(crate) extern "C" fn before_writing(fd: c_int) {
    let Some(runtime) = Runtime::existing() else { return };
    if runtime.has_suspended() && !runtime.is_inside() && would_block(fd, libc::POLLOUT) {
        before_blocking();
    }
}

/// sendfile(2) names the descriptor that is written first, too, and splice(2) third.
extern "C" fn before_splicing(_: c_int, _: *mut c_void, to: c_int) {
    before_writing(to);
}

/// A function of libssl that changes an SSL in a way that does not wait: its handshake goes on to its next need of the
/// network first, where it would be without us.
extern "C" fn before_touching(ssl: *mut Ssl) {
    // SAFETY: the program's SSL.
    let Some(handshake) = (unsafe { crate::handshake::suspended(ssl) }) else { return };
    match Runtime::existing() {
        Some(runtime) if core::ptr::eq(runtime, handshake.runtime) => {
            if !runtime.is_inside() {
                runtime.call_in(handshake);
            }
        }
        _ => _ = handshake.is_called_in(ssl),
    }
}

mod table {
    use super::*;

    macro_rules! table {
        ($table:ident $library:ident by $by:ident: $why:literal; $($before:ident: $($name:ident)*;)*) => {
            $($(
                #[allow(non_snake_case)]
                mod $name {
                    use super::*;
                    pub(super) static ORIGINAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
                    before!(hook, SUSPENDED, $before, ORIGINAL);
                    pub(super) const FUNCTION: *const c_void = hook as *const c_void;
                }
            )*)*

            #[doc = $why]
            pub(crate) static $table: &[Hook] = &[$($(Hook {
                name: hasten_hook::c_name!($name),
                library: Library::$library,
                by: By::$by,
                required: false,
                function: $name::FUNCTION,
                original: &$name::ORIGINAL,
            }),*),*];
        };
    }

    table! {
        BLOCKING C by Program: "Functions in which a thread blocks, or from which it does not return.";
        before_blocking:
            nanosleep clock_nanosleep usleep sleep pause sigsuspend sigwait sigwaitinfo sigtimedwait thrd_sleep
            wait
            pthread_join pthread_timedjoin_np pthread_clockjoin_np pthread_barrier_wait
            pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait
            pthread_mutex_timedlock pthread_mutex_clocklock
            pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock
            thrd_join cnd_wait cnd_timedwait mtx_timedlock
            sem_wait sem_timedwait sem_clockwait
            flock lockf msgrcv msgsnd semop semtimedop mq_receive mq_timedreceive mq_send mq_timedsend
            aio_suspend lio_listio tcdrain
            sched_yield pthread_yield thrd_yield
            getaddrinfo getnameinfo gethostbyname gethostbyname_r gethostbyname2_r
            system popen pclose posix_spawn posix_spawnp vfork _Fork clone
            epoll_pwait2 sigpause
            execv execvp execvpe execl execlp execle fexecve
            exit _exit _Exit quick_exit pthread_exit
            dlclose;
        before_asking:
            ioctl;
        before_reading:
            eventfd_read readv preadv recvfrom recvmsg recvmmsg __read_chk __recv_chk __recvfrom_chk;
        before_writing:
            write writev send sendto sendmsg sendmmsg sendfile sendfile64;
        before_splicing:
            splice;
        before_connecting:
            connect;
        before_waiting_with:
            wait3;
        before_waiting_for:
            waitpid wait4;
        before_waiting_for_any:
            waitid;
        before_control:
            fcntl fcntl64;
        before_opening:
            open open64 __open_2 __open64_2;
        before_opening_at:
            openat openat64 __openat_2 __openat64_2;
        before_opening_a_stream:
            fopen fopen64 freopen freopen64;
        before_character:
            getc fgetc _IO_getc fgetwc getwc;
        before_scanning:
            fscanf vfscanf __isoc99_fscanf __isoc99_vfscanf __isoc23_fscanf __isoc23_vfscanf;
        before_line:
            fgets fgets_unlocked getline fgetws;
        before_block:
            fread fread_unlocked getdelim __getdelim __fgets_chk;
        before_checked_block:
            __fread_chk;
    }

    table! {
        ONCE C by Application: "What runs once. OpenSSL asks for that many times in a handshake, and waits for nobody then.";
        before_once:
            pthread_once call_once;
    }

    table! {
        TOUCHING Ssl by Program: "Functions that change an SSL in the middle of its handshake.";
        before_touching:
            SSL_set_bio SSL_set_fd SSL_set_rfd SSL_set_wfd SSL_set0_rbio SSL_set0_wbio SSL_set_SSL_CTX SSL_set_session
            SSL_set_accept_state SSL_set_connect_state SSL_connect SSL_set_ssl_method SSL_stateless SSL_sendfile
            SSL_renegotiate SSL_renegotiate_abbreviated SSL_key_update SSL_set_info_callback SSL_set_verify
            SSL_set_cert_cb SSL_use_certificate SSL_use_PrivateKey SSL_use_cert_and_key SSL_set_options
            SSL_clear_options SSL_set_num_tickets SSL_set_quiet_shutdown SSL_set_shutdown SSL_copy_session_id;
    }
}
