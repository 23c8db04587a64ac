//! Functions that are about to block: those in which a thread waits, or from which it does not return.
//!
//! Before each runs, it is checked whether the wait may last, and if so, suspended handshakes are called in
//! (`loans.rs`). Locks are in `locks.rs`, waits that report connections in `epoll.rs` and `loans.rs`.

use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32};

use hasten_hook::{By, Hook, Library, before};
use libc::{FILE, socklen_t};
use rustix::event::PollFlags;

use super::{fdcalls, fds, kernel, loans};
use crate::handshake::slice;
use crate::openssl::Ssl;
use crate::runtime::{Runtime, SUSPENDED};

pub(crate) use self::table::{BLOCKING, LOOKING, ONCE, TOUCHING};

/// The thread is about to block, or to end.
pub(crate) extern "C" fn before_blocking() {
    fds::next_moment();
    if let Some(runtime) = loans::runtime_to_call_in() {
        runtime.call_in_all();
    }
}

/// Before a call that blocks if its descriptor does.
pub(crate) extern "C" fn before_connecting(fd: c_int) {
    if kernel::is_non_blocking(fd) == Some(false) {
        before_blocking();
    }
}

/// Before reading a stream, which blocks inside the C library, out of sight.
#[cold]
fn before_stream(stream: *mut FILE) {
    if stream.is_null() || !Runtime::existing().is_some_and(Runtime::has_suspended) {
        return;
    }
    // SAFETY: the program's stream, whose descriptor is read; errno is this thread's.
    unsafe {
        let errno = *libc::__errno_location();
        let fd = libc::fileno(stream);
        // A memory stream has no descriptor.
        if is_locked(stream) || (fd >= 0 && !kernel::is_file(fd)) {
            before_blocking();
        }
        *libc::__errno_location() = errno;
    }
}

/// Before writing to a stream, which blocks there too.
extern "C" fn before_print(stream: *mut FILE) {
    print(stream, 0);
}

#[cold]
fn print(stream: *mut FILE, len: usize) {
    if stream.is_null() || !Runtime::existing().is_some_and(Runtime::has_suspended) {
        return;
    }
    // SAFETY: the program's stream; errno is this thread's.
    unsafe {
        let errno = *libc::__errno_location();
        let fd = libc::fileno(stream);
        if is_locked(stream) || blocks_output(fd, len) {
            before_blocking();
        }
        *libc::__errno_location() = errno;
    }
}

/// Whether another thread holds the lock of a stream.
fn is_locked(stream: *mut FILE) -> bool {
    // SAFETY: the program's stream.
    unsafe {
        let is_locked = ftrylockfile(stream) != 0;
        if !is_locked {
            funlockfile(stream);
        }
        is_locked
    }
}

unsafe extern "C" {
    fn ftrylockfile(stream: *mut FILE) -> c_int;
    fn funlockfile(stream: *mut FILE);
    static stdin: *mut FILE;
    static stdout: *mut FILE;
    static stderr: *mut FILE;
}

extern "C" fn before_standard_input() {
    // SAFETY: a variable of the C library.
    before_stream(unsafe { stdin });
}

extern "C" fn before_standard_output() {
    // SAFETY: a variable of the C library.
    before_print(unsafe { stdout });
}

extern "C" fn before_standard_error() {
    // SAFETY: a variable of the C library.
    before_print(unsafe { stderr });
}

/// Before flushing one stream, or all streams.
extern "C" fn before_flushing(stream: *mut FILE) {
    match stream.is_null() {
        true => before_blocking(),
        false => before_print(stream),
    }
}

/// Before closing a stream, and its descriptor with it.
extern "C" fn before_closing_a_stream(stream: *mut FILE) {
    if !stream.is_null() {
        before_print(stream);
        // SAFETY: the program's stream.
        let fd = unsafe { libc::fileno(stream) };
        loans::release_descriptor(fd);
        before_lingering(fd);
    }
}

/// The stream is the second argument.
extern "C" fn before_printing_to(_: *mut c_void, stream: *mut FILE) {
    before_print(stream);
}

/// The stream is the second argument, after the text.
extern "C" fn before_printing_text(text: *const c_char, stream: *mut FILE) {
    // SAFETY: the program's text, which is not read past its end.
    print(stream, if text.is_null() { 0 } else { unsafe { libc::strnlen(text, ATOMIC + 1) } });
}

extern "C" fn before_printing_line(text: *const c_char) {
    // SAFETY: a variable of the C library.
    before_printing_text(text, unsafe { stdout });
}

/// The stream is the fourth argument.
extern "C" fn before_printing_block(_: *mut c_void, size: usize, count: usize, stream: *mut FILE) {
    print(stream, size.saturating_mul(count));
}

/// Before reading one character; most are already in the stream's buffer.
extern "C" fn before_character(stream: *mut FILE) {
    /// The beginning of glibc's FILE, which is part of its ABI. musl's is the same.
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

/// The stream is the third argument.
extern "C" fn before_line(_: *mut c_void, _: usize, stream: *mut FILE) {
    before_stream(stream);
}

/// The stream is the fourth argument.
extern "C" fn before_block(_: *mut c_void, _: usize, _: usize, stream: *mut FILE) {
    before_stream(stream);
}

/// The stream is the fifth argument.
extern "C" fn before_checked_block(_: *mut c_void, _: usize, _: usize, _: usize, stream: *mut FILE) {
    before_stream(stream);
}

/// Before waiting for a file lock that another process may hold, or changing the mode of a connection.
extern "C" fn before_control(fd: c_int, command: c_int) {
    match command {
        libc::F_SETLKW | libc::F_OFD_SETLKW => before_blocking(),
        libc::F_SETFL => before_asking(fd),
        _ => {}
    }
}

/// Before waiting for a child; the options are the second argument.
extern "C" fn before_waiting_with(_: *mut c_int, options: c_int) {
    wait_for_child(options);
}

/// The options are the third argument.
extern "C" fn before_waiting_for(_: libc::pid_t, _: *mut c_int, options: c_int) {
    wait_for_child(options);
}

/// The options are the fourth argument.
extern "C" fn before_waiting_for_any(_: c_int, _: libc::id_t, _: *mut c_void, options: c_int) {
    wait_for_child(options);
}

fn wait_for_child(options: c_int) {
    if options & libc::WNOHANG == 0 {
        before_blocking();
    }
}

/// Before opening a file: a FIFO may not have its other end yet.
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
    // SAFETY: the program's path.
    if kernel::is_fifo(directory, unsafe { CStr::from_ptr(path) }) {
        before_blocking();
    }
}

/// Before an initialisation that runs once, perhaps in another thread right now.
extern "C" fn before_once(control: *const AtomicI32) {
    /// 0 is not begun, 1 in progress, 2 done. In glibc the bits above hold the number of forks; in musl 3 is in progress
    /// with another thread waiting.
    const UNDER_WAY: i32 = 1;
    // SAFETY: null, or the program's variable.
    if unsafe { control.as_ref() }.is_some_and(|state| state.load(Acquire) & UNDER_WAY != 0) {
        before_blocking();
    }
}

/// Before a direct system call. Few of these never block, and few programs make any.
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

/// Before a request to a driver; one to a socket may ask how much unread data it has.
extern "C" fn before_request(fd: c_int, request: libc::Ioctl) {
    if request == libc::FIONREAD {
        fdcalls::looks_at(fd);
    }
    if SUSPENDED.load(Relaxed) > 0 {
        before_asking(fd);
    }
}

/// Before a read that may only peek; the flags are the fourth argument.
extern "C" fn before_receiving_from(fd: c_int, _: *mut c_void, _: usize, flags: c_int) {
    if flags & libc::MSG_PEEK != 0 {
        fdcalls::looks_at(fd);
    }
    if SUSPENDED.load(Relaxed) > 0 {
        before_reading(fd);
    }
}

/// The flags are the third argument.
extern "C" fn before_receiving_message(fd: c_int, _: *mut c_void, flags: c_int) {
    before_receiving_from(fd, null_mut(), 0, flags);
}

/// Whether closing a socket of this process may wait until its peer has received everything.
static LINGERS: AtomicBool = AtomicBool::new(false);

type SetOption = unsafe extern "C" fn(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int;

/// # Safety
///
/// As for setsockopt(2): `value` is valid for reads of `len` bytes, unless the kernel refuses the call.
pub(crate) unsafe fn set_option(
    original: SetOption,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: the program's call.
    let result = unsafe { original(fd, level, name, value, len) };
    if result == 0 && level == libc::SOL_SOCKET && name == libc::SO_LINGER {
        // SAFETY: the kernel could read it, and rejects shorter values.
        let set = unsafe { value.cast::<libc::linger>().read_unaligned() };
        if set.l_onoff != 0 && set.l_linger != 0 {
            LINGERS.store(true, Relaxed);
        }
    }
    result
}

/// Before closing a descriptor: a lingering socket blocks then, whatever its flags say.
pub(crate) fn before_lingering(fd: c_int) {
    if !LINGERS.load(Relaxed) || !Runtime::existing().is_some_and(Runtime::has_suspended) {
        return;
    }
    if kernel::lingers(fd) {
        before_blocking();
    }
}

/// Before closing descriptors by number: calls in handshakes suspended on them.
extern "C" fn before_closing_range(first: c_uint, last: c_uint, flags: c_uint) {
    const CLOEXEC: c_uint = 4;
    if flags & CLOEXEC == 0 {
        call_in_range(first, last);
    }
}

extern "C" fn before_closing_from(first: c_int) {
    call_in_range(first.max(0) as c_uint, c_uint::MAX);
}

fn call_in_range(first: c_uint, last: c_uint) {
    if let Some(runtime) = loans::runtime_to_call_in() {
        runtime.call_in_if(|handshake| {
            u32::try_from(handshake.fd.get()).is_ok_and(|fd| (first..=last).contains(&fd))
        });
    }
}

/// Before sending a signal that may be meant for this process, and stop or end it.
extern "C" fn before_killing(process: libc::pid_t, signal: c_int) {
    // SAFETY: no argument; cannot fail.
    if signal != 0 && (process <= 0 || process == unsafe { libc::getpid() }) {
        before_blocking();
    }
}

/// Before an operation on a connection by its descriptor, such as shutting it down or asking for its unread data.
extern "C" fn before_asking(fd: c_int) {
    fds::next_moment();
    if Runtime::existing().is_none_or(|runtime| !runtime.is_inside()) {
        loans::release_descriptor(fd);
    }
}

/// Before a read that may block; it does not if there is data.
pub(crate) extern "C" fn before_reading(fd: c_int) {
    if !Runtime::existing().is_some_and(Runtime::has_suspended) {
        return;
    }
    if !fds::is_still_non_blocking(fd) && !kernel::is_ready(fd, PollFlags::IN) {
        before_blocking();
    }
}

/// The number of bytes that a pipe or socket takes if it is writable at all.
const ATOMIC: usize = libc::PIPE_BUF;

/// Before a write that may block, or by which the program gets ahead of libssl.
fn before_output(fd: c_int, len: usize) {
    let Some(runtime) = Runtime::existing().filter(|runtime| !runtime.is_inside()) else { return };
    loans::release_descriptor(fd);
    if runtime.has_suspended() && blocks_output(fd, len) {
        before_blocking();
    }
}

/// Whether a write of `len` bytes may wait for a reader.
fn blocks_output(fd: c_int, len: usize) -> bool {
    fd >= 0
        && !fds::is_still_non_blocking(fd)
        && (!kernel::is_ready(fd, PollFlags::OUT) || (len > ATOMIC && !kernel::is_file(fd)))
}

extern "C" fn before_writing(fd: c_int, _: *const c_void, len: usize) {
    before_output(fd, len);
}

/// Assumes the greatest length: only the kernel can safely read what the program points to.
extern "C" fn before_writing_anything(fd: c_int) {
    before_output(fd, usize::MAX);
}

/// From one descriptor to another; each is followed by its offset.
extern "C" fn before_splicing(from: c_int, _: *mut c_void, to: c_int) {
    before_reading(from);
    before_writing_anything(to);
}

extern "C" fn before_teeing(from: c_int, to: c_int) {
    before_reading(from);
    before_writing_anything(to);
}

/// Before a function of libssl that changes an SSL without waiting: the handshake first runs on until it next needs the
/// network, where it would be without us.
extern "C" fn before_touching(ssl: *mut Ssl) {
    // SAFETY: the program's SSL.
    let Some(handshake) = (unsafe { crate::handshake::suspended(ssl) }) else { return };
    match Runtime::existing() {
        Some(runtime) if core::ptr::eq(runtime, handshake.runtime) => {
            if !runtime.is_inside() && !slice::is_in_signal_handler(&runtime.native_stack()) {
                runtime.call_in(handshake);
            }
        }
        _ => _ = handshake.is_called_in(ssl),
    }
}

mod table {
    use super::*;

    /// The counter for functions that are always observed.
    static ALWAYS: AtomicU32 = AtomicU32::new(1);

    macro_rules! table {
        ($table:ident $library:ident by $by:ident if $counter:ident: $why:literal; $($before:ident: $($name:ident)*;)*) => {
            $($(
                #[allow(non_snake_case)]
                mod $name {
                    use super::*;
                    pub(super) static ORIGINAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
                    before!(hook, $counter, $before, ORIGINAL);
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
        BLOCKING C by Program if SUSPENDED: "Functions in which a thread blocks, or from which it does not return.";
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
            dlclose
            raise abort __assert_fail pthread_kill killpg sigqueue
            syslog vsyslog __syslog_chk __vsyslog_chk;
        before_asking:
            shutdown;
        before_killing:
            kill;
        before_closing_range:
            close_range;
        before_closing_from:
            closefrom;
        before_reading:
            eventfd_read readv preadv recvmmsg __read_chk __recv_chk;
        before_writing:
            write send sendto;
        before_writing_anything:
            writev pwritev sendmsg sendmmsg sendfile sendfile64 dprintf vdprintf __dprintf_chk __vdprintf_chk vmsplice;
        before_splicing:
            splice;
        before_teeing:
            tee;
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
            getc fgetc _IO_getc fgetwc getwc getc_unlocked fgetc_unlocked;
        before_scanning:
            fscanf vfscanf __isoc99_fscanf __isoc99_vfscanf __isoc23_fscanf __isoc23_vfscanf flockfile __uflow __underflow
            fwscanf vfwscanf __isoc99_fwscanf;
        before_standard_input:
            scanf vscanf __isoc99_scanf __isoc99_vscanf __isoc23_scanf __isoc23_vscanf getchar getchar_unlocked gets getwchar;
        before_print:
            fprintf vfprintf __fprintf_chk __vfprintf_chk fwprintf vfwprintf __fwprintf_chk __overflow
            fseek fseeko fseeko64 rewind fsetpos;
        before_standard_output:
            printf vprintf __printf_chk __vprintf_chk putchar putchar_unlocked wprintf vwprintf putwchar;
        before_standard_error:
            perror warn warnx vwarn vwarnx err errx error psignal;
        before_flushing:
            fflush fflush_unlocked fcloseall;
        before_closing_a_stream:
            fclose;
        before_printing_to:
            fputc putc _IO_putc fputc_unlocked putc_unlocked fputwc putwc fputws;
        before_printing_text:
            fputs fputs_unlocked;
        before_printing_line:
            puts;
        before_printing_block:
            fwrite fwrite_unlocked;
        before_line:
            fgets fgets_unlocked getline fgetws;
        before_block:
            fread fread_unlocked getdelim __getdelim __fgets_chk;
        before_checked_block:
            __fread_chk;
    }

    table! {
        LOOKING C by Program if ALWAYS: "Functions by which a program may see that nothing has come.";
        before_request:
            ioctl;
        before_receiving_from:
            recvfrom __recvfrom_chk;
        before_receiving_message:
            recvmsg;
    }

    table! {
        ONCE C by Application if SUSPENDED: "What runs once. OpenSSL asks for that many times in a handshake, and waits for nobody then.";
        before_once:
            pthread_once call_once;
    }

    table! {
        TOUCHING Ssl by Program if SUSPENDED: "Functions that change an SSL in the middle of its handshake, or tell of it.";
        before_touching:
            SSL_set_bio SSL_set_fd SSL_set_rfd SSL_set_wfd SSL_set0_rbio SSL_set0_wbio SSL_set_SSL_CTX SSL_set_session
            SSL_set_accept_state SSL_set_connect_state SSL_connect SSL_set_ssl_method SSL_stateless SSL_sendfile
            SSL_renegotiate SSL_renegotiate_abbreviated SSL_key_update SSL_set_info_callback SSL_set_verify
            SSL_set_cert_cb SSL_use_certificate SSL_use_PrivateKey SSL_use_cert_and_key SSL_set_options
            SSL_clear_options SSL_set_num_tickets SSL_set_quiet_shutdown SSL_set_shutdown SSL_copy_session_id
            SSL_get_state SSL_state_string SSL_state_string_long SSL_rstate_string SSL_rstate_string_long
            SSL_version SSL_get_version SSL_session_reused
            SSL_get_current_cipher SSL_get_pending_cipher SSL_get_current_compression SSL_get_shared_ciphers
            SSL_get_finished SSL_get_peer_finished SSL_get_client_random SSL_get_server_random
            SSL_get_session SSL_get1_session SSL_get0_alpn_selected SSL_get0_next_proto_negotiated SSL_get_servername
            SSL_get_servername_type SSL_get0_peer_certificate SSL_get1_peer_certificate SSL_get_peer_cert_chain
            SSL_get0_verified_chain SSL_get_verify_result SSL_get_certificate SSL_get_privatekey
            SSL_get_sigalgs SSL_get_shared_sigalgs SSL_get1_supported_ciphers SSL_get_client_ciphers
            SSL_get_early_data_status SSL_get_max_early_data SSL_pending SSL_has_pending SSL_get_rbio SSL_get_wbio
            SSL_export_keying_material SSL_export_keying_material_early SSL_get_shutdown SSL_renegotiate_pending
            SSL_get_key_update_type SSL_ctrl SSL_shutdown SSL_get_srtp_profile SSL_verify_client_post_handshake;
    }
}
