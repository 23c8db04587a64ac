//! Tries the shortcuts out with the libraries of this process.
//!
//! A server with the shortcuts under trial and a client that is all OpenSSL's, or the other way round, shake hands through
//! memory, and exchange data both ways, by each kind of key, exchange and version for which there are shortcuts; one client comes back with the session
//! it was given. The other side checks every secret, signature and MAC, so a libssl that calls libcrypto in another way than
//! a shortcut expects fails here, not with somebody's connection.
//!
//! The keys are for this alone: they protect nothing, and no certificate of theirs is trusted anywhere.

use core::ffi::{CStr, c_int, c_long};
use core::ptr::null_mut;

use super::abi::*;
use super::shortcuts::{self, Role, Shortcut, Shortcuts};
use crate::hooks::original;
use crate::runtime::Runtime;

/// A key, and a certificate signed with it.
struct Identity {
    kind: c_int,
    certificate: &'static [u8],
    key: &'static [u8],
}

const P_256: Identity = Identity {
    kind: EVP_PKEY_EC,
    certificate: include_bytes!("trial/p-256-certificate.der"),
    key: include_bytes!("trial/p-256-key.der"),
};
const RSA_2048: Identity = Identity {
    kind: EVP_PKEY_RSA,
    certificate: include_bytes!("trial/rsa-2048-certificate.der"),
    key: include_bytes!("trial/rsa-2048-key.der"),
};

/// A kind of handshake, as the client asks for it.
struct Case {
    version: c_long,
    /// The first that the library has is asked for.
    groups: &'static [&'static CStr],
    signature: &'static CStr,
    /// Of TLS 1.3.
    suite: &'static CStr,
    /// Whether the client returns with the session that it was given.
    comes_back: bool,
}

/// Of TLS 1.2.
const CIPHER: &CStr = c"ECDHE-ECDSA-AES128-GCM-SHA256";
const SUITES: &CStr = c"TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384";

/// The group that OpenSSL has since 3.5.
const HYBRID: &CStr = c"X25519MLKEM768";

/// Each shortcut is in one of them: keys of both kinds, a group by its curve's name, both key schedules, both ways to encode a
/// share.
const CASES: [Case; 3] = [
    Case {
        version: TLS1_3,
        groups: &[c"X25519"],
        signature: c"ECDSA+SHA256",
        suite: c"TLS_AES_256_GCM_SHA384",
        comes_back: true,
    },
    Case {
        version: TLS1_2,
        groups: &[c"P-256"],
        signature: c"ECDSA+SHA256",
        suite: c"TLS_AES_128_GCM_SHA256",
        comes_back: false,
    },
    Case {
        version: TLS1_3,
        groups: &[HYBRID, c"X25519"],
        signature: c"RSA-PSS+SHA256",
        suite: c"TLS_AES_128_GCM_SHA256",
        comes_back: false,
    },
];

/// Calls of either side until the handshake is over; TLS 1.2 needs four.
const CALLS: usize = 8;

/// The shortcuts among these that work on that side. No handshake of this thread is running.
pub(super) fn run(runtime: &Runtime, role: Role, shortcuts: Shortcuts) -> Shortcuts {
    // SAFETY: no argument, no precondition. Errors are dropped: they are not the program's.
    unsafe { ERR_set_mark.get()() };
    let proven = hasten_telemetry::uncounted(|| {
        let trial = Trial::new(runtime, role);
        trial.map_or(Shortcuts::NONE, |trial| choose(shortcuts, |tried| trial.succeeds(tried)))
    });
    // SAFETY: as above.
    unsafe { ERR_pop_to_mark.get()() };
    proven
}

/// All of these, or else those that work with what they need and still do together.
fn choose(all: Shortcuts, work: impl Fn(Shortcuts) -> bool) -> Shortcuts {
    if work(all) {
        return all;
    }
    // Otherwise something other than the shortcuts fails.
    if !work(Shortcuts::NONE) {
        return Shortcuts::NONE;
    }
    let works = |shortcut: &Shortcut| {
        let needs = if *shortcut == Shortcut::Encapsulation { Shortcut::Exchange } else { *shortcut };
        all.has(*shortcut) && work(Shortcuts::only(*shortcut).with(needs))
    };
    let sound = Shortcut::ALL.into_iter().filter(works).fold(Shortcuts::NONE, Shortcuts::with);
    if work(sound) { sound } else { Shortcuts::NONE }
}

/// Both sides, for all kinds of handshakes.
struct Trial<'a> {
    runtime: &'a Runtime,
    /// The side with the shortcuts.
    role: Role,
    server: Context,
    client: Context,
}

impl<'a> Trial<'a> {
    /// Fails if OpenSSL's configuration forbids what the trial needs.
    fn new(runtime: &'a Runtime, role: Role) -> Option<Self> {
        let server = Context::new(TLS_server_method.get())?;
        let client = Context::new(TLS_client_method.get())?;
        let is_set = server.allow(TLS1_2, TLS1_3) && server.identify(&P_256) && server.identify(&RSA_2048);
        let groups = [c"X25519:P-256:X25519MLKEM768", c"X25519:P-256"];
        (is_set && groups.into_iter().any(|groups| server.exchanges_by(groups))).then_some(Self {
            runtime,
            role,
            server,
            client,
        })
    }

    /// Whether handshakes of each kind succeed with these shortcuts.
    fn succeeds(&self, shortcuts: Shortcuts) -> bool {
        CASES.iter().all(|case| {
            let session = self.shake(case, shortcuts, None);
            session.is_some_and(|session| {
                !case.comes_back || self.shake(case, shortcuts, Some(&session)).is_some()
            })
        })
    }

    /// A handshake, with that session if there is one; the session to come back with.
    fn shake(&self, case: &Case, shortcuts: Shortcuts, session: Option<&Resumable>) -> Option<Resumable> {
        let (server, client) = (self.server.open()?, self.client.open()?);
        if !client.asks_for(case) {
            return None;
        }
        // SAFETY: both SSLs are fresh and alive, and so is the session.
        unsafe {
            SSL_set_accept_state.get()(server.0);
            SSL_set_connect_state.get()(client.0);
            if session.is_some_and(|session| SSL_set_session.get()(client.0, session.0) != 1) {
                return None;
            }
        }
        connect(&server, &client)?;
        let is_over = (0..CALLS).any(|_| {
            let client_done = self.drive(&client, Role::Client, shortcuts) == 1;
            let server_done = self.drive(&server, Role::Server, shortcuts) == 1;
            client_done && server_done
        });
        if !(is_over && server.reaches(&client) && client.reaches(&server)) {
            return None;
        }
        // SAFETY: both SSLs are alive.
        unsafe {
            let resumed = SSL_session_reused.get()(server.0) == 1;
            let session = (resumed == session.is_some()).then(|| SSL_get1_session.get()(client.0))?;
            (!session.is_null()).then_some(Resumable(session))
        }
    }
}

impl Trial<'_> {
    /// Continues a handshake: with the shortcuts if this is the side that tries them out.
    fn drive(&self, connection: &Connection, role: Role, shortcuts: Shortcuts) -> c_int {
        let drive = original::SSL_do_handshake.get();
        // SAFETY: the SSL is alive, and used here alone.
        let shake = || unsafe {
            match role {
                Role::Server => self.runtime.shake_at_once(connection.0, drive),
                Role::Client => self.runtime.as_client(|| drive(connection.0)),
            }
        };
        if role == self.role {
            shortcuts::trying(role, shortcuts, shake)
        } else {
            // SAFETY: as above.
            unsafe { drive(connection.0) }
        }
    }
}

/// Lets each side read what the other writes.
fn connect(server: &Connection, client: &Connection) -> Option<()> {
    for (from, to) in [(server, client), (client, server)] {
        // SAFETY: the memory BIO has two references, one for each side, which the sides take; both SSLs are alive and have no
        // BIOs yet.
        unsafe {
            let pipe = BIO_new.get()(BIO_s_mem.get()());
            if pipe.is_null() {
                return None;
            }
            BIO_up_ref.get()(pipe);
            SSL_set0_wbio.get()(from.0, pipe);
            SSL_set0_rbio.get()(to.0, pipe);
        }
    }
    Some(())
}

/// An SSL_CTX.
struct Context(*mut SslCtx);

impl Context {
    fn new(method: unsafe extern "C" fn() -> *const SslMethod) -> Option<Self> {
        // SAFETY: a method of libssl's.
        let context = unsafe { SSL_CTX_new.get()(method()) };
        (!context.is_null()).then_some(Self(context))
    }

    /// Allows these versions of TLS, and all that they need, whatever OpenSSL's configuration prefers.
    fn allow(&self, lowest: c_long, highest: c_long) -> bool {
        // SAFETY: the context is alive; libssl copies the strings.
        unsafe {
            SSL_CTX_set_security_level.get()(self.0, 0);
            let control = SSL_CTX_ctrl.get();
            control(self.0, SSL_CTRL_SET_MIN_PROTO_VERSION, lowest, null_mut()) == 1
                && control(self.0, SSL_CTRL_SET_MAX_PROTO_VERSION, highest, null_mut()) == 1
                && SSL_CTX_set_cipher_list.get()(self.0, CIPHER.as_ptr()) == 1
                && SSL_CTX_set_ciphersuites.get()(self.0, SUITES.as_ptr()) == 1
        }
    }

    /// Whether the library has these groups; if so, sets them.
    fn exchanges_by(&self, groups: &CStr) -> bool {
        let groups = groups.as_ptr().cast_mut().cast();
        // SAFETY: the context is alive; libssl copies the string.
        unsafe { SSL_CTX_ctrl.get()(self.0, SSL_CTRL_SET_GROUPS_LIST, 0, groups) == 1 }
    }

    fn identify(&self, identity: &Identity) -> bool {
        let (certificate, key) = (identity.certificate, identity.key);
        let (certificate_len, key_len) = (certificate.len() as c_int, key.len() as c_long);
        // SAFETY: the context is alive; libssl reads the bytes.
        unsafe {
            SSL_CTX_use_certificate_ASN1.get()(self.0, certificate_len, certificate.as_ptr()) == 1
                && SSL_CTX_use_PrivateKey_ASN1.get()(identity.kind, self.0, key.as_ptr(), key_len) == 1
        }
    }

    fn open(&self) -> Option<Connection> {
        // SAFETY: the context is alive.
        let ssl = unsafe { SSL_new.get()(self.0) };
        (!ssl.is_null()).then_some(Connection(ssl))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the reference is ours.
        unsafe { SSL_CTX_free.get()(self.0) }
    }
}

/// An SSL.
struct Connection(*mut Ssl);

impl Connection {
    /// Restricts a client to one kind of handshake.
    fn asks_for(&self, case: &Case) -> bool {
        let text = |text: &CStr| text.as_ptr().cast_mut().cast();
        // SAFETY: the SSL is alive; libssl copies the strings.
        unsafe {
            SSL_set_security_level.get()(self.0, 0);
            let control = SSL_ctrl.get();
            control(self.0, SSL_CTRL_SET_MIN_PROTO_VERSION, case.version, null_mut()) == 1
                && control(self.0, SSL_CTRL_SET_MAX_PROTO_VERSION, case.version, null_mut()) == 1
                && SSL_set_cipher_list.get()(self.0, CIPHER.as_ptr()) == 1
                && SSL_set_ciphersuites.get()(self.0, case.suite.as_ptr()) == 1
                && case
                    .groups
                    .iter()
                    .any(|group| control(self.0, SSL_CTRL_SET_GROUPS_LIST, 0, text(group)) == 1)
                && control(self.0, SSL_CTRL_SET_SIGALGS_LIST, 0, text(case.signature)) == 1
        }
    }

    /// Whether a byte that is sent here arrives there.
    fn reaches(&self, other: &Connection) -> bool {
        let (sent, mut received) = (b'h', 0_u8);
        // SAFETY: both SSLs are alive, and the byte is valid for reads and the other for writes.
        unsafe {
            original::SSL_write.get()(self.0, (&raw const sent).cast(), 1) == 1
                && original::SSL_read.get()(other.0, (&raw mut received).cast(), 1) == 1
                && received == sent
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the reference is ours; no handshake of it is suspended. A session whose connection breaks off is not used
        // again.
        unsafe {
            SSL_set_shutdown.get()(self.0, SSL_SENT_SHUTDOWN);
            original::SSL_free.get()(self.0);
        }
    }
}

/// An SSL_SESSION.
struct Resumable(*mut Session);

impl Drop for Resumable {
    fn drop(&mut self) {
        // SAFETY: the reference is ours.
        unsafe { SSL_SESSION_free.get()(self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(shortcuts: impl IntoIterator<Item = Shortcut>) -> Shortcuts {
        shortcuts.into_iter().fold(Shortcuts::NONE, Shortcuts::with)
    }

    #[test]
    fn one_that_fails_is_left_out() {
        let all = of(Shortcut::ALL);
        assert_eq!(choose(all, |_| true), all);
        for broken in Shortcut::ALL.into_iter().filter(|shortcut| *shortcut != Shortcut::Exchange) {
            let others = Shortcut::ALL.into_iter().filter(|other| *other != broken);
            assert_eq!(choose(all, |tried| !tried.has(broken)), of(others));
        }
    }

    #[test]
    fn one_that_needs_another_fails_with_it() {
        let left = [Shortcut::Exchange, Shortcut::Encapsulation];
        let others = Shortcut::ALL.into_iter().filter(|other| !left.contains(other));
        assert_eq!(choose(of(Shortcut::ALL), |tried| !tried.has(Shortcut::Exchange)), of(others));
    }

    #[test]
    fn one_that_is_not_possible_is_not_tried() {
        let possible = of([Shortcut::Exchange, Shortcut::Tickets]);
        assert_eq!(choose(possible, |tried| tried != possible), of([]));
        assert_eq!(choose(possible, |tried| !tried.has(Shortcut::Tickets)), of([Shortcut::Exchange]));
    }

    #[test]
    fn those_that_fail_only_together_are_left_out_together() {
        let (one, other) = (Shortcut::Exchange, Shortcut::Tickets);
        assert_eq!(choose(of(Shortcut::ALL), |tried| !(tried.has(one) && tried.has(other))), Shortcuts::NONE);
    }

    #[test]
    fn none_is_used_where_even_openssl_alone_fails() {
        assert_eq!(choose(of(Shortcut::ALL), |_| false), Shortcuts::NONE);
    }
}
