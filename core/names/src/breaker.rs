//! Whether an engine is in service, and why not.

use crate::vocabulary::names;

names! {
    /// Whether an engine is used.
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
    /// The state in words, for people to whom a "closed" breaker would sound like an engine that is off.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Closed => "in service",
            Self::Open => "resting",
            Self::HalfOpen => "on trial",
            Self::Disabled => "disabled",
        }
    }

    /// How much attention it needs; the highest state speaks for several processes.
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
    /// What went wrong with an operation or a device, and so opened a breaker. The page holds its number.
    Fault {
        /// The engine, or its library, answered with an error.
        Error => "error",
        /// It did not answer within the time allowed.
        TimedOut => "timed-out",
        /// It repeatedly took no more work.
        QueueFull => "queue-full",
        /// Its answer was wrong or incomplete.
        BadOutput => "bad-output",
        /// The driver reports that the device's firmware does not respond.
        HeartbeatLost => "heartbeat-lost",
        /// The device has disappeared.
        Gone => "gone",
        /// The engine, its library or a session could not be started.
        Init => "init",
        /// It ended in the middle of the work, in a way that should be impossible.
        Crashed => "crashed",
        /// No instance or queue was left for this process; so far devices report [`Self::Init`] instead.
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
