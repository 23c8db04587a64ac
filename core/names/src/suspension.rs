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
