//! A list of CPUs in the kernel's notation.

use std::fmt;

/// More than any kernel has.
const MOST: usize = 8192;

/// Ascending, without repetitions, never empty if it was parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

impl CpuList {
    /// Reads `0,2-4`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<usize>().ok().filter(|cpu| *cpu < MOST);
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            cpus.extend(first..=last);
        }
        cpus.sort_unstable();
        cpus.dedup();
        Some(Self(cpus))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a + 1 == *b);
        let run = |run: &[usize]| match run {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        };
        f.pad(&runs.map(run).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_the_kernel_does() {
        let again = |text| CpuList::parse(text).map(|list| list.to_string());
        assert_eq!(again("0,2-4, 3,6").as_deref(), Some("0,2-4,6"));
        assert_eq!(again("7").as_deref(), Some("7"));
        for wrong in ["", "x", "3-1", "0,", "-1", "0-99999"] {
            assert_eq!(again(wrong), None, "{wrong}");
        }
    }
}
