//! Why an operation took the original path.

use crate::vocabulary::names;

names! {
    /// Why an operation took the original path.
    Reason {
        /// Disabled by the kill switch or the configuration.
        Disabled => "disabled",
        /// The CPU, or the kernel, does not offer AVX-512 IFMA.
        NoIfma => "no-ifma",
        /// Nothing else was waiting when the loop ran dry.
        Alone => "alone",
        /// Others were waiting, but too few for a batch to pay.
        BelowBreakEven => "below-break-even",
        /// The connection is not driven by an epoll loop that hasten sees.
        NotPolled => "not-polled",
        /// The key's algorithm, size or exponent has no batched engine.
        UnsupportedKey => "unsupported-key",
        /// The private key cannot be read: HSM, engine or provider key.
        NotExportable => "not-exportable",
        /// Padding, digest or another parameter cannot be batched.
        UnsupportedParameters => "unsupported-parameters",
        /// The thread suspends as many handshakes as it can, or had no memory for another.
        NoStack => "no-stack",
        /// The connection went away while its operation was queued.
        Cancelled => "cancelled",
        /// Called on a thread other than the one that runs the loop.
        ForeignThread => "foreign-thread",
        /// Not part of a server's handshake: a client, or the program's own use.
        ServerNotHandshaking => "server-not-handshaking",
        /// The TLS library in this process is not one hasten knows.
        UnknownLibrary => "unknown-library",
        /// A deflate stream without compression: nothing to gain.
        StoredLevel => "stored-level",
        /// A deflate strategy, or so little memory, that only the original gives the compression its caller expects.
        UnusualStrategy => "unusual-strategy",
        /// A deflate stream flushed so often that the original is cheaper.
        SmallFlushes => "small-flushes",
        /// The zlib in this process allocates in a way that leaves no room for hasten.
        UnknownAllocation => "unknown-allocation",
        /// The engine's breaker is open after a wrong result.
        BreakerOpen => "breaker-open",
        /// The engine was taken out of service by the operator at run time.
        EngineDisabled => "engine-disabled",
        /// Called on a stack that is not the thread's own: a fiber's, or a signal's.
        NotNativeStack => "not-native-stack",
        /// The program has callbacks or BIOs that may not run wherever a suspended handshake is called in.
        Callback => "callback",
        /// One of a thread's first handshakes, which are only watched.
        Shadowed => "shadowed",
        /// This process no longer suspends handshakes; its [`Suspension`] says why.
        SuspensionOff => "suspension-off",
    }
}

impl Reason {
    /// True if the operation was queued, and so is also counted as scalar; false if it never got that far and only this
    /// reason records it.
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
                "A thread had more handshakes in flight than it can suspend: add workers, so that each has fewer."
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
                "An engine failed or gave a wrong result, which was caught and redone by the original; it is retried \
                 periodically, with verification: `hasten engine list` says which engine and why."
            }
            Self::EngineDisabled => {
                "An engine was taken out of service by hand: put it back with `hasten engine enable all`."
            }
            Self::NotNativeStack => {
                "These handshakes run on a fiber or in a signal handler, whose stack cannot be left and resumed: let the \
                 program call OpenSSL from its threads' own stacks, or leave it as it is."
            }
            Self::Callback => {
                "These connections have callbacks or BIOs of the program's own, which may not run at any time, so their \
                 handshakes are not suspended: nothing to do."
            }
            Self::Shadowed => {
                "The first handshakes of each thread are only observed, until they show that its event loop resumes them: \
                 normal after a start; if this count keeps growing, the program starts threads faster than that."
            }
            Self::SuspensionOff => {
                "This process did something that suspended handshakes might not survive, so it suspends none until it is \
                 restarted: `hasten top` says what it was."
            }
            Self::UnknownLibrary => {
                "The process uses a TLS library hasten does not know: run `hasten check -- PROGRAM`; OpenSSL 3.0 to 3.6 or 4.0, \
                 linked dynamically, is needed."
            }
        }
    }
}
