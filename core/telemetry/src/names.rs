//! What is counted. The position of a name in its list is its index on the
//! page: append new names at the end, never reorder, never reuse.

/// Declares an enum whose variants are indices with a stable kebab-case name.
macro_rules! names {
    ($(#[$meta:meta])* $Name:ident { $($(#[$doc:meta])* $Variant:ident => $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $Name { $($(#[$doc])* $Variant,)+ }

        impl $Name {
            /// Every name, in page order.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$Variant),+];

            /// How many names this version knows.
            pub const COUNT: usize = Self::ALL.len();

            /// Position on the page.
            pub const fn index(self) -> usize {
                self as usize
            }

            /// The name at a position; the inverse of [`Self::index`].
            pub const fn from_index(index: usize) -> Option<Self> {
                if index < Self::COUNT { Some(Self::ALL[index]) } else { None }
            }

            /// The stable name, as shown to people and written to JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$Variant => $text,)+ }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

names! {
    /// An asymmetric operation that can be batched.
    Algorithm {
        Rsa2048Sign => "rsa-2048-sign",
        Rsa3072Sign => "rsa-3072-sign",
        Rsa4096Sign => "rsa-4096-sign",
        P256Sign => "p-256-sign",
        P384Sign => "p-384-sign",
        X25519Keygen => "x25519-keygen",
        P256Keygen => "p-256-keygen",
        P384Keygen => "p-384-keygen",
        X25519Derive => "x25519-derive",
        P256Derive => "p-256-derive",
        P384Derive => "p-384-derive",
    }
}

names! {
    /// Why an operation took the original path.
    Reason {
        /// Switched off by the kill switch or the configuration.
        Disabled => "disabled",
        /// The CPU, or the kernel, does not offer AVX-512 IFMA.
        NoIfma => "no-ifma",
        /// Nothing else was waiting when the loop ran dry.
        Alone => "alone",
        /// Others were waiting, but fewer than make a batch pay.
        BelowBreakEven => "below-break-even",
        /// The connection is not driven by an epoll loop that hasten sees.
        NotPolled => "not-polled",
        /// The key's algorithm, size or exponent has no batched engine.
        UnsupportedKey => "unsupported-key",
        /// The private key cannot be read out: HSM, engine or provider key.
        NotExportable => "not-exportable",
        /// Padding, digest or another parameter is outside what is batched.
        UnsupportedParameters => "unsupported-parameters",
        /// No coroutine stack was left to suspend the handshake on.
        NoStack => "no-stack",
        /// The connection went away while its operation was queued.
        Cancelled => "cancelled",
        /// Called on another thread than the one that runs the loop.
        ForeignThread => "foreign-thread",
        /// Not part of a server's handshake: a client, or the program's own use.
        ServerNotHandshaking => "server-not-handshaking",
        /// The TLS library in this process is not one hasten knows.
        UnknownLibrary => "unknown-library",
        /// A deflate stream without compression: nothing to gain.
        StoredLevel => "stored-level",
        /// A deflate strategy, or so little memory, that only the original compresses as its caller expects.
        UnusualStrategy => "unusual-strategy",
        /// A deflate stream that is flushed so often that the original is cheaper.
        SmallFlushes => "small-flushes",
        /// The zlib in this process allocates in a way that leaves no room for hasten.
        UnknownAllocation => "unknown-allocation",
        /// The engine's breaker is open after a wrong result.
        BreakerOpen => "breaker-open",
        /// The engine was taken out of service by hand while the program runs.
        EngineDisabled => "engine-disabled",
        /// Called on a stack that is not the thread's own: a fiber's, or a signal's.
        NotNativeStack => "not-native-stack",
        /// The program has callbacks that cannot be run on its own stack.
        Callback => "callback",
        /// One of the first handshakes of a thread, which are only watched.
        Shadowed => "shadowed",
        /// This process puts no handshake aside any more; its [`Suspension`] says why.
        SuspensionOff => "suspension-off",
    }
}

impl Reason {
    /// True when the operation had been queued and is counted as scalar too;
    /// false when it never got that far and only this reason records it.
    pub const fn was_queued(self) -> bool {
        matches!(self, Self::Alone | Self::BelowBreakEven)
    }

    /// What it means and what to do, in one sentence.
    pub const fn help(self) -> &'static str {
        match self {
            Self::Disabled => {
                "Batching is switched off: unset HASTEN_DISABLE, set `enabled = true` under [tls] in hasten.toml, \
                 and restart the server."
            }
            Self::NoIfma => {
                "This CPU or kernel has no AVX-512 IFMA, so nothing can be batched: run `hasten check` to see what \
                 is missing and use a host that has it (Intel Ice Lake, AMD Zen 4 or later)."
            }
            Self::Alone => {
                "One handshake at a time was waiting, which the original function does best: normal at low load; \
                 with many connections use fewer workers so that each sees more of them."
            }
            Self::BelowBreakEven => {
                "Too few handshakes were waiting together for a batch to pay: normal at low load; with many \
                 connections use fewer workers so that each sees more of them."
            }
            Self::NotPolled => {
                "These connections are blocking or not driven by epoll, so their handshakes cannot be suspended: \
                 let the server use epoll (nginx: `use epoll;`, HAProxy: remove `noepoll`)."
            }
            Self::UnsupportedKey => {
                "The certificate's key has no batched engine: use RSA-2048/3072/4096 with exponent 65537, P-256 or \
                 P-384."
            }
            Self::NotExportable => {
                "The private key lives in an HSM, engine or provider and cannot be read: leave it there, or use a \
                 key file if policy allows."
            }
            Self::UnsupportedParameters => {
                "The padding or digest of the signature, or the group of the key exchange, is not one TLS servers \
                 usually negotiate: check the server's curve and signature-algorithm settings."
            }
            Self::NoStack => {
                "More handshakes were in flight than there are coroutine stacks: raise the memory-map limit \
                 (`sysctl vm.max_map_count=262144`) or add workers."
            }
            Self::Cancelled => {
                "Clients went away while their handshake was waiting: look for client timeouts, health checks that \
                 close early, or an attack."
            }
            Self::ForeignThread => {
                "The server moved handshakes between threads, which cannot be suspended: let each thread run its \
                 own event loop."
            }
            Self::ServerNotHandshaking => {
                "These were not server handshakes (outgoing TLS, tickets or the program's own signatures), which \
                 are left alone on purpose: nothing to do."
            }
            Self::StoredLevel => {
                "These streams are stored, not compressed (level 0), which costs next to nothing: nothing to do."
            }
            Self::UnusualStrategy => {
                "The program asked zlib for a strategy other than the default, or for a memory level below 4, which \
                 the original serves best: nothing to do."
            }
            Self::SmallFlushes => {
                "These streams are flushed after a few bytes each time, which the original does best: let the \
                 program flush less often (nginx: keep `proxy_buffering on`, raise `postpone_output`)."
            }
            Self::UnknownAllocation => {
                "The zlib of this process asks its allocator for memory in a way that hasten cannot share: use the \
                 distribution's zlib1g package, and report the zlib in use."
            }
            Self::BreakerOpen => {
                "An engine failed or gave a wrong result, which was caught and done again by the original; it is tried \
                 again, verified, now and then: `hasten engine list` says which engine and why."
            }
            Self::EngineDisabled => {
                "An engine was taken out of service by hand: put it back with `hasten engine enable all`."
            }
            Self::NotNativeStack => {
                "These handshakes run on a fiber or in a signal handler, whose stack cannot be left and come back to: \
                 let the program call OpenSSL from its threads' own stacks, or leave it as it is."
            }
            Self::Callback => {
                "The program has given OpenSSL a callback that must run on its own stack at a moment when that stack is \
                 not there: nothing is lost but the batch, and nothing is to be done."
            }
            Self::Shadowed => {
                "The first handshakes of each thread are only watched, until they show that their loop comes back for \
                 them: normal after a start; if it stays, the program starts threads faster than they can be watched."
            }
            Self::SuspensionOff => {
                "This process did something that handshakes put aside might not survive, so none is put aside any more \
                 until it is started again: `hasten top` says what it was."
            }
            Self::UnknownLibrary => {
                "The process uses a TLS library hasten does not know: run `hasten check -- PROGRAM`; OpenSSL 3.0 or \
                 later, linked dynamically, is needed."
            }
        }
    }
}

names! {
    /// Something that happened, other than an operation or a bypass.
    Event {
        HandshakeStarted => "handshake-started",
        HandshakeFinished => "handshake-finished",
        HandshakeFailed => "handshake-failed",
        /// A handshake was put aside to wait for its batch.
        Suspended => "suspended",
        /// A suspended handshake went on.
        Resumed => "resumed",
        /// A suspended handshake was given up: its connection was closed.
        Cancelled => "cancelled",
        /// TLS 1.3 key schedule computed directly, not through EVP_KDF.
        HkdfDirect => "hkdf-direct",
        /// Finished MAC computed directly, not through EVP_Q_mac.
        MacDirect => "mac-direct",
        /// An algorithm fetch answered from the cache.
        FetchCached => "fetch-cached",
        /// A batch of ephemeral keys was made for the pool.
        PoolRefilled => "pool-refilled",
        /// A handshake took its ephemeral key from the pool.
        PoolHit => "pool-hit",
        /// The pool was empty; the original function made the key.
        PoolMiss => "pool-miss",
        /// A signature failed its verification and was not released.
        VerifyFailed => "verify-failed",
        /// A child dropped the state inherited through fork.
        ForkReset => "fork-reset",
        /// Readiness reported by hasten for resumed connections.
        SyntheticWakeups => "synthetic-wakeups",
        /// Turns of the event loop that ran at least one batch.
        TurnsBatched => "turns-batched",
        /// A deflate stream was opened, or opened again.
        DeflateStreams => "deflate-streams",
        /// Bytes that came in to be compressed.
        DeflateBytesIn => "deflate-bytes-in",
        /// Bytes that went out compressed.
        DeflateBytesOut => "deflate-bytes-out",
        /// Bytes compressed by ISA-L.
        DeflateIsal => "deflate-isal-bytes",
        /// Bytes compressed by libdeflate.
        DeflateLibdeflate => "deflate-libdeflate-bytes",
        /// Bytes compressed by zlib-rs.
        DeflateZlibRs => "deflate-zlib-rs-bytes",
        /// Bytes compressed by the original zlib.
        DeflateOriginal => "deflate-original-bytes",
        /// Bytes whose compressed form was inflated again and compared before it left.
        DeflateVerified => "deflate-verified-bytes",
        /// Results of an engine that were wrong; each was done again by the original.
        DeflateMismatch => "deflate-mismatch",
        /// Bytes held back so that they can be compressed together.
        DeflateBuffered => "deflate-buffered-bytes",
        /// Estimated CPU time saved by compressing with another engine, in nanoseconds.
        DeflateSavedNs => "deflate-saved-ns",
        /// An inflate stream was opened, or opened again.
        InflateStreams => "inflate-streams",
        /// Compressed bytes that came in.
        InflateBytesIn => "inflate-bytes-in",
        /// Bytes that went out decompressed.
        InflateBytesOut => "inflate-bytes-out",
        /// Bytes decompressed by hasten's own inflate.
        InflateHasten => "inflate-hasten-bytes",
        /// Bytes decompressed by the original zlib.
        InflateOriginal => "inflate-original-bytes",
        /// Estimated CPU time saved by decompressing with another engine, in nanoseconds.
        InflateSavedNs => "inflate-saved-ns",
        /// An engine's breaker opened.
        BreakerOpened => "breaker-opened",
        /// Bytes written by hasten itself, where no engine made less of them.
        DeflateHasten => "deflate-hasten-bytes",
        /// A suspended handshake ran on because its thread was about to block elsewhere.
        CalledIn => "called-in",
        /// A suspended handshake ran on because nobody had come for it in time, although it was reported.
        Overdue => "called-in-overdue",
        /// A suspended handshake was called by another thread than its own.
        ForeignCall => "foreign-thread-call",
    }
}

names! {
    /// Whether a process puts handshakes aside. On the page it is one more than its index here; 0 is not told.
    Suspension {
        /// It does: hasten's tests run this very program.
        Proven => "proven",
        /// It does: its handshakes were watched first and came back as they should.
        Expected => "expected",
        /// Not yet: its handshakes are watched.
        Shadowing => "shadowing",
        /// Not any more; a [`Doubt`] says why.
        Off => "off",
    }
}

names! {
    /// Why a process puts no handshake aside any more. On the page it is one more than its index here; 0 is none.
    Doubt {
        /// A suspended handshake was called by another thread than its own.
        ForeignThread => "foreign-thread",
        /// A descriptor moved to another epoll instance while its handshake was suspended.
        MovedDescriptor => "moved-descriptor",
        /// A suspended handshake was reported, and nobody came for it.
        NobodyCame => "nobody-came",
        /// The epoll instance of a suspended handshake is watched by another one.
        NestedLoop => "nested-loop",
        /// OpenSSL was given another provider, engine or set of properties while the program runs.
        ReconfiguredOpenssl => "reconfigured-openssl",
        /// A thread blocked on a fiber's stack, or deep in its own, upon the frames of a suspended handshake.
        DeepStack => "deep-stack",
        /// The program has restricted its own system calls.
        Sandbox => "sandbox",
        /// The program looks into the socket of a handshake, to see whether its client is still there.
        LooksAtSocket => "looks-at-socket",
    }
}

impl Suspension {
    /// Which one speaks for a process whose threads differ: being off holds for all of them, and otherwise it is as far
    /// as its furthest thread.
    pub const fn precedence(self) -> u8 {
        match self {
            Self::Shadowing => 0,
            Self::Expected => 1,
            Self::Proven => 2,
            Self::Off => 3,
        }
    }
}

impl Doubt {
    /// What it means and what to do, in one sentence.
    pub const fn help(self) -> &'static str {
        match self {
            Self::ForeignThread => {
                "The program lets several threads work on one connection while it shakes hands, which cannot be waited \
                 for: let each thread keep its connections, or leave TLS out with HASTEN_DISABLE=tls."
            }
            Self::MovedDescriptor => {
                "The program hands connections from one event loop to another while they shake hands: hand them over \
                 before or after that, or leave TLS out with HASTEN_DISABLE=tls."
            }
            Self::NobodyCame => {
                "The program was told that a connection is readable and did not come back for it: please report which \
                 program it is, and leave TLS out with HASTEN_DISABLE=tls."
            }
            Self::NestedLoop => {
                "The program waits on an epoll instance that watches another one, through which a wake-up cannot be \
                 passed on: use another event method if it has one, or leave TLS out with HASTEN_DISABLE=tls."
            }
            Self::ReconfiguredOpenssl => {
                "The program loaded a provider or changed the default properties of OpenSSL while it ran: do it before \
                 the first handshake (in openssl.cnf), and restart it."
            }
            Self::Sandbox => {
                "The program restricts its own system calls with seccomp, so hasten makes none from then on: switch the \
                 program's sandbox off if it has a setting for that, or leave TLS out with HASTEN_DISABLE=tls."
            }
            Self::LooksAtSocket => {
                "The program asks how much lies unread in a connection that shakes hands (FIONREAD, MSG_PEEK), and may take a \
                 connection with nothing for a closed one: nothing is to be done."
            }
            Self::DeepStack => {
                "A thread of the program blocked on another stack than where it shakes hands (a fiber's), or tens of \
                 kilobytes deeper: please report which program it is, and leave TLS out with HASTEN_DISABLE=tls."
            }
        }
    }
}

names! {
    /// Something that does the work of an original function; on the page a process says which it has.
    Engine {
        /// Intel's crypto_mb, eight operations at once.
        Multibuffer => "multibuffer",
        /// Intel's ISA-L, deflate.
        Isal => "isal",
        /// libdeflate.
        Libdeflate => "libdeflate",
        /// zlib-rs.
        ZlibRs => "zlib-rs",
        /// Asymmetric cryptography by QuickAssist, through qatlib.
        Qat => "qat",
        /// Compression by QuickAssist, through QATzip.
        Qatzip => "qatzip",
        /// Compression by the In-Memory Analytics Accelerator, through QPL.
        Qpl => "qpl",
        /// Copies by the Data Streaming Accelerator, through DML.
        Dml => "dml",
        /// Hand-out of connections by the Dynamic Load Balancer.
        Dlb => "dlb",
    }
}

names! {
    /// What an engine is made of. On the page it is one more than its index here.
    EngineClass {
        Software => "software",
        Device => "device",
    }
}

names! {
    /// Whether an engine is asked.
    BreakerState {
        /// In service.
        Closed => "closed",
        /// Out of service after a fault, until it is tried again.
        Open => "open",
        /// Being tried again.
        HalfOpen => "half-open",
        /// Taken out of service by an operator.
        Disabled => "disabled",
    }
}

impl BreakerState {
    /// What people are shown, to whom a breaker that is closed sounds like an engine that is off.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Closed => "in service",
            Self::Open => "resting",
            Self::HalfOpen => "on trial",
            Self::Disabled => "disabled",
        }
    }

    /// How much it wants to be looked at; the highest speaks for several processes.
    pub const fn gravity(self) -> u8 {
        match self {
            Self::Closed => 0,
            Self::Disabled => 1,
            Self::HalfOpen => 2,
            Self::Open => 3,
        }
    }
}

names! {
    /// Why a breaker opened. On the page it is one more than its index here; 0 is none.
    Fault {
        /// The engine said that it failed.
        Error => "error",
        /// It did not answer in time.
        TimedOut => "timed-out",
        /// It took nothing more for too long.
        QueueFull => "queue-full",
        /// Its result was wrong.
        BadOutput => "bad-output",
        /// The device's own sign of life stopped.
        HeartbeatLost => "heartbeat-lost",
        /// The device is not there any more.
        Gone => "gone",
        /// It could not be started.
        Init => "init",
        /// It ended in the middle of the work.
        Crashed => "crashed",
        /// There was no instance or queue left for this process.
        NoInstance => "no-instance",
    }
}

impl Fault {
    /// What it means and what to do, in one sentence.
    pub const fn help(self) -> &'static str {
        match self {
            Self::Error => {
                "The engine reported an error: look at the kernel log for its device, and report it if there is none."
            }
            Self::TimedOut => {
                "The engine did not answer in time: look whether its device is shared with others that keep it \
                 busy, and at the kernel log."
            }
            Self::QueueFull => {
                "The device takes no more work: give this program an instance or queue of its own, or fewer workers."
            }
            Self::BadOutput => {
                "The engine gave a wrong result, which was caught and done again by the original: run the host's \
                 memory and CPU diagnostics, and report the CPU model if it happens on more than one host."
            }
            Self::HeartbeatLost => {
                "The device's firmware stopped giving signs of life: reset the device, or enable its automatic reset."
            }
            Self::Gone => {
                "The device disappeared: look at the kernel log for a reset, an unbound driver or a hardware fault."
            }
            Self::Init => "The engine could not be started: `hasten check` says what it lacks.",
            Self::NoInstance => {
                "The device has no instance or queue left for this process: configure more of them, or run fewer \
                 workers."
            }
            Self::Crashed => {
                "The engine ended in the middle of its work: report it with the version of its library."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ALGORITHM_CAPACITY, ENGINE_CAPACITY, EVENT_CAPACITY, REASON_CAPACITY};
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_kebab_case_and_map_back_to_their_index() {
        fn check(names: &[(usize, &'static str)]) {
            let unique: HashSet<_> = names.iter().map(|(_, name)| name).collect();
            assert_eq!(unique.len(), names.len());
            for (position, (index, name)) in names.iter().enumerate() {
                assert_eq!(position, *index);
                let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                assert!(name.chars().all(kebab) && !name.starts_with('-') && !name.ends_with('-'), "{name}");
            }
        }
        check(&Algorithm::ALL.map(|a| (a.index(), a.as_str())));
        check(&Reason::ALL.map(|r| (r.index(), r.as_str())));
        check(&Event::ALL.map(|e| (e.index(), e.as_str())));
        check(&Engine::ALL.map(|e| (e.index(), e.as_str())));
        check(&BreakerState::ALL.map(|s| (s.index(), s.as_str())));
        check(&Fault::ALL.map(|f| (f.index(), f.as_str())));
        check(&Suspension::ALL.map(|s| (s.index(), s.as_str())));
        check(&Doubt::ALL.map(|d| (d.index(), d.as_str())));
        assert!(Algorithm::ALL.iter().all(|a| Algorithm::from_index(a.index()) == Some(*a)));
        assert_eq!(Reason::from_index(Reason::COUNT), None);
    }

    /// The order is the page's ABI: a reader of another build relies on it.
    #[test]
    fn the_first_and_last_names_stay_where_version_1_put_them() {
        assert_eq!((Algorithm::Rsa2048Sign.index(), Algorithm::P384Derive.index()), (0, 10));
        assert_eq!((Reason::Disabled.index(), Reason::UnknownLibrary.index()), (0, 12));
        assert_eq!((Event::HandshakeStarted.index(), Event::TurnsBatched.index()), (0, 15));
        assert_eq!((Engine::Multibuffer.index(), Engine::ZlibRs.index(), Engine::Dlb.index()), (0, 3, 8));
        assert_eq!((BreakerState::Closed.index(), BreakerState::Disabled.index()), (0, 3));
        assert_eq!((Fault::Error.index(), Fault::Crashed.index()), (0, 7));
        assert_eq!((Reason::NotNativeStack.index(), Reason::SuspensionOff.index()), (19, 22));
        assert_eq!((Event::CalledIn.index(), Event::ForeignCall.index()), (35, 37));
        assert_eq!((Suspension::Proven.index(), Suspension::Off.index()), (0, 3));
        assert_eq!((Doubt::ForeignThread.index(), Doubt::ReconfiguredOpenssl.index()), (0, 4));
    }

    #[test]
    fn the_page_has_room_for_every_name() {
        const { assert!(Algorithm::COUNT <= ALGORITHM_CAPACITY) };
        const { assert!(Reason::COUNT <= REASON_CAPACITY) };
        const { assert!(Event::COUNT <= EVENT_CAPACITY) };
        const { assert!(Engine::COUNT <= ENGINE_CAPACITY) };
    }

    #[test]
    fn the_manual_lists_every_name_at_its_place() {
        let manual = include_str!("../../../docs/telemetry.md");
        let row = |index: usize, name: &str| format!("| {index} | `{name}` |");
        let reasons = Reason::ALL.iter().map(|r| row(r.index(), r.as_str()));
        let events = Event::ALL.iter().map(|e| row(e.index(), e.as_str()));
        let engines = Engine::ALL.iter().map(|e| row(e.index(), e.as_str()));
        let faults = Fault::ALL.iter().map(|f| row(f.index() + 1, f.as_str()));
        let states =
            BreakerState::ALL.iter().map(|s| format!("| {} | `{s}` | {} |", s.index(), s.in_words()));
        let suspensions = Suspension::ALL.iter().map(|s| row(s.index() + 1, s.as_str()));
        let doubts = Doubt::ALL.iter().map(|d| row(d.index() + 1, d.as_str()));
        let rows = reasons.chain(events).chain(engines).chain(faults).chain(states);
        for row in rows.chain(suspensions).chain(doubts) {
            assert!(manual.contains(&row), "{row}");
        }
        let algorithms = Algorithm::ALL.map(|a| format!("`{a}`")).join(", ");
        assert!(manual.replace('\n', " ").contains(&algorithms), "{algorithms}");
    }

    #[test]
    fn every_reason_fault_and_doubt_has_a_sentence_of_help() {
        let reasons = Reason::ALL.map(|reason| (reason.as_str(), reason.help()));
        let faults = Fault::ALL.map(|fault| (fault.as_str(), fault.help()));
        let doubts = Doubt::ALL.map(|doubt| (doubt.as_str(), doubt.help()));
        for (name, help) in reasons.into_iter().chain(faults).chain(doubts) {
            assert!(help.len() > 40 && help.ends_with('.') && !help.contains("  "), "{name}: {help}");
        }
    }
}
