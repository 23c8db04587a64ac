//! What `systemctl show` prints: a block of `Name=value` lines for each unit, and an empty line between two.

/// The properties of one unit, in the order in which they were printed; a name may come more than once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Properties(Vec<(String, String)>);

impl Properties {
    pub(crate) fn parse_all(text: &str) -> Vec<Self> {
        text.split("\n\n").map(Self::parse).filter(|properties| !properties.0.is_empty()).collect()
    }

    fn parse(block: &str) -> Self {
        let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self(block.lines().filter_map(pair).collect())
    }

    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The first value, empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    pub(crate) fn is_yes(&self, name: &str) -> bool {
        self.get(name) == "yes"
    }

    /// A number; systemd writes the largest one, or words in brackets, for "unknown".
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name).parse().ok().filter(|number| *number != u64::MAX)
    }

    /// The file of the first command: `{ path=/usr/sbin/nginx ; argv[]=… ; … }`.
    pub(crate) fn executable(&self, name: &str) -> Option<&str> {
        let value = self.get(name).split_once("path=")?.1;
        Some(value.split_once(" ;").map_or(value, |(path, _)| path))
    }

    /// The files of a property such as `/etc/default/haproxy (ignore_errors=yes)`.
    pub(crate) fn files<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.all(name).map(|value| value.split_once(" (").map_or(value, |(path, _)| path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "\
Id=nginx.service
MainPID=76
CPUUsageNSec=18446744073709551615
ExecStart={ path=/usr/sbin/nginx ; argv[]=/usr/sbin/nginx -g daemon on; master_process on; ; ignore_errors=no ; pid=75 }

Id=haproxy.service
Environment=CONFIG=/etc/haproxy/haproxy.cfg \"EXTRAOPTS=-S /run/haproxy-master.sock\"
EnvironmentFiles=/etc/default/haproxy (ignore_errors=yes)
EnvironmentFiles=/etc/sysconfig/haproxy (ignore_errors=yes)
DynamicUser=yes
";

    #[test]
    fn each_unit_has_its_own() {
        let [nginx, haproxy] = &Properties::parse_all(TWO)[..] else { panic!("two units") };
        assert_eq!(nginx.get("Id"), "nginx.service");
        assert_eq!(nginx.number("MainPID"), Some(76));
        assert_eq!(nginx.number("CPUUsageNSec"), None);
        assert_eq!(nginx.executable("ExecStart"), Some("/usr/sbin/nginx"));
        assert_eq!(haproxy.executable("ExecStart"), None);
        assert!(haproxy.is_yes("DynamicUser") && !nginx.is_yes("DynamicUser"));
        let files: Vec<_> = haproxy.files("EnvironmentFiles").collect();
        assert_eq!(files, ["/etc/default/haproxy", "/etc/sysconfig/haproxy"]);
    }
}
