//! Whether handshakes are suspended, and if no longer, why.

use crate::vocabulary::names;

names! {
    /// Whether a process suspends handshakes. The page holds its number.
    Suspension {
        /// Yes: hasten's tests run this very program.
        Proven => "proven",
        /// Yes: its handshakes were watched first and came back as they should.
        Expected => "expected",
        /// Not yet: its handshakes are being watched.
        Shadowing => "shadowing",
        /// No longer; a [`Doubt`] says why.
        Off => "off",
    }
}

names! {
    /// Why a process no longer suspends handshakes. The page holds its number.
    Doubt {
        /// A thread other than its own called a suspended handshake.
        ForeignThread => "foreign-thread",
        /// A descriptor moved to another epoll instance while its handshake was suspended.
        MovedDescriptor => "moved-descriptor",
        /// Too many suspended handshakes were reported without the program coming back for them.
        NobodyCame => "nobody-came",
        /// The epoll instance of a suspended handshake is watched by another one.
        NestedLoop => "nested-loop",
        /// OpenSSL was given another provider, engine or set of properties at run time.
        ReconfiguredOpenssl => "reconfigured-openssl",
        /// A thread blocked on a fiber's stack, or blocked or freed an SSL deep in its own stack, over the frames of a
        /// suspended handshake.
        DeepStack => "deep-stack",
        /// The program has restricted its own system calls.
        Sandbox => "sandbox",
        /// The program peeks into the socket of a handshake to see whether its client is still there.
        LooksAtSocket => "looks-at-socket",
        /// Handshakes of one thread take turns in the middle: coroutines (greenlets, fibers) switch in a callback.
        Coroutines => "coroutines",
    }
}

impl Suspension {
    /// Which state speaks for a process whose threads differ: off applies to all of them, otherwise the most advanced
    /// thread decides.
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
                "Several threads of the program work on one connection during its handshake, so it cannot be suspended: \
                 let each thread keep its connections, or leave TLS out with HASTEN_DISABLE=tls."
            }
            Self::MovedDescriptor => {
                "The program moves connections from one event loop to another during their handshakes: move them before or \
                 after, or leave TLS out with HASTEN_DISABLE=tls."
            }
            Self::NobodyCame => {
                "The program ignored reports that a connection is readable, so its handshake was not resumed: please report \
                 which program it is, and leave TLS out with HASTEN_DISABLE=tls."
            }
            Self::NestedLoop => {
                "The program waits on an epoll instance that watches another one, which hides a handshake that is ready: use \
                 another event method if it has one, or leave TLS out with HASTEN_DISABLE=tls."
            }
            Self::ReconfiguredOpenssl => {
                "The program loaded an OpenSSL provider or changed the default properties at run time: do it before the first \
                 handshake (in openssl.cnf), and restart it."
            }
            Self::Sandbox => {
                "The program restricts its own system calls with seccomp, so hasten makes none from then on: switch the \
                 program's sandbox off if it has a setting for that, or leave TLS out with HASTEN_DISABLE=tls."
            }
            Self::LooksAtSocket => {
                "The program checks connections for unread data during their handshakes (FIONREAD, MSG_PEEK), and may take \
                 one without data for closed: nothing to do."
            }
            Self::Coroutines => {
                "The program switches coroutines (greenlets, fibers) in a callback in the middle of a handshake, so the \
                 frames on the stack may be those of another one: nothing to do."
            }
            Self::DeepStack => {
                "A thread of the program blocked on another stack than its handshakes' (a fiber's), or tens of kilobytes \
                 deeper: please report which program it is, and leave TLS out with HASTEN_DISABLE=tls."
            }
        }
    }
}
