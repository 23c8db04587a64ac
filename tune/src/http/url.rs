/// The URL of a request; no fragment, no password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) tls: bool,
    /// Without the brackets of an IPv6 address.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// With the query.
    pub(crate) path: String,
}

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (tls, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return Err("it has to begin with http:// or https://"),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or("the bracket of its address has no end")?;
                (host, port.strip_prefix(':'))
            }
            None => match authority.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() || path.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
            return Err("it has no host, or blanks in it");
        }
        let port = match port {
            None => {
                if tls {
                    443
                } else {
                    80
                }
            }
            Some(port) => port.parse().map_err(|_| "its port is not a number up to 65535")?,
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { tls, host: host.to_owned(), port, path })
    }

    /// As in the `Host` header.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == (if self.tls { 443 } else { 80 }) { host } else { format!("{host}:{}", self.port) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_all_shapes() {
        for (text, tls, host, port, path, authority) in [
            ("http://localhost:3000", false, "localhost", 3000, "/", "localhost:3000"),
            ("https://a.b/c?d#e", true, "a.b", 443, "/c?d", "a.b"),
            ("http://[::1]:8080?x=1", false, "::1", 8080, "/?x=1", "[::1]:8080"),
            ("http://me:secret@host/", false, "host", 80, "/", "host"),
        ] {
            let url = Url::parse(text).unwrap();
            let found = (url.tls, url.host.as_str(), url.port, url.path.as_str(), url.authority());
            assert_eq!(found, (tls, host, port, path, authority.to_owned()), "{text}");
        }
        for text in
            ["localhost:3000", "ftp://x/", "http://", "http://x:99999/", "http://x/a b", "http://[::1/"]
        {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }
}
