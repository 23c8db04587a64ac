//! Why a device did not do what it was asked.

use std::fmt;

/// What went wrong with one operation or with the device. The numbers are stable: they stand on the counter page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fault {
    /// The library answered with an error.
    Error = 1,
    /// No answer within the time that was allowed.
    TimedOut = 2,
    /// The device took no more work, again and again.
    QueueFull = 3,
    /// The answer was wrong or incomplete.
    BadOutput = 4,
    /// The driver says that the device's firmware does not answer.
    HeartbeatLost = 5,
    /// The device has gone away.
    Gone = 6,
    /// The library or a session could not be started, or there was no instance left for this process.
    Init = 7,
    /// The engine failed in a way that it should not be able to.
    Crashed = 8,
}

impl Fault {
    pub const ALL: [Self; 8] = [
        Self::Error,
        Self::TimedOut,
        Self::QueueFull,
        Self::BadOutput,
        Self::HeartbeatLost,
        Self::Gone,
        Self::Init,
        Self::Crashed,
    ];

    /// The stable name, as in reports and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::TimedOut => "timed-out",
            Self::QueueFull => "queue-full",
            Self::BadOutput => "bad-output",
            Self::HeartbeatLost => "heartbeat-lost",
            Self::Gone => "gone",
            Self::Init => "init",
            Self::Crashed => "crashed",
        }
    }

    pub const fn from_number(number: u8) -> Option<Self> {
        let mut at = 0;
        while at < Self::ALL.len() {
            if Self::ALL[at] as u8 == number {
                return Some(Self::ALL[at]);
            }
            at += 1;
        }
        None
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Fault;

    #[test]
    fn numbers_and_names_are_one_to_one() {
        for (at, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, at + 1);
            assert_eq!(Fault::from_number(fault as u8), Some(fault));
            assert_eq!(Fault::ALL.iter().filter(|other| other.as_str() == fault.as_str()).count(), 1);
        }
        assert_eq!(Fault::from_number(0), None);
        assert_eq!(Fault::from_number(200), None);
    }
}
