//! Files of the kinds that servers compress: generated from templates, as real ones are, with a fixed seed.

use std::fmt::Write as _;

use super::prose::{Prose, Random};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Html,
    /// Answers of an API.
    Json,
    /// JavaScript processed by a minifier.
    Script,
    Style,
    /// Lines of an access log.
    Log,
    Svg,
    /// Already compressed data.
    Random,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Json => "json",
            Self::Script => "js",
            Self::Style => "css",
            Self::Log => "log",
            Self::Svg => "svg",
            Self::Random => "compressed",
        }
    }

    fn seed(self) -> u64 {
        0x6861_7374_656e + self as u64
    }
}

/// Exactly `size` bytes: a longer file of this kind, cut.
pub(crate) fn file(kind: Kind, size: usize) -> Vec<u8> {
    let mut writer = Writer {
        random: Random::new(kind.seed() ^ (size as u64) << 20),
        prose: Prose::new(),
        text: String::with_capacity(size + 4096),
    };
    if kind == Kind::Random {
        return (0..size).map(|_| writer.random.next() as u8).collect();
    }
    writer.begin(kind);
    while writer.text.len() < size {
        writer.item(kind);
    }
    let mut bytes = writer.text.into_bytes();
    bytes.truncate(size);
    bytes
}

struct Writer {
    random: Random,
    prose: Prose,
    text: String,
}

impl Writer {
    fn begin(&mut self, kind: Kind) {
        let title = self.prose.phrase(&mut self.random, 5);
        self.text += &match kind {
            Kind::Html => format!(
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n  <meta charset=\"utf-8\">\n  <title>{title}</title>\n  \
                 <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n  \
                 <link rel=\"stylesheet\" href=\"/static/main.css\">\n  <script src=\"/static/main.js\" defer></script>\n\
                 </head>\n<body>\n<main class=\"content\">\n<h1>{title}</h1>\n"
            ),
            Kind::Json => format!("{{\"title\":\"{title}\",\"items\":["),
            Kind::Svg => "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 600\">\n".to_owned(),
            Kind::Script => "\"use strict\";".to_owned(),
            Kind::Style | Kind::Log | Kind::Random => String::new(),
        };
    }

    fn item(&mut self, kind: Kind) {
        match kind {
            Kind::Html => self.html(),
            Kind::Json => self.json(),
            Kind::Script => self.script(),
            Kind::Style => self.style(),
            Kind::Log => self.log(),
            Kind::Svg => self.svg(),
            Kind::Random => {}
        }
    }

    /// A section of a page.
    fn html(&mut self) {
        match self.random.below(4) {
            0 | 1 => self.article(),
            2 => self.links(),
            _ => self.table(),
        }
    }

    fn article(&mut self) {
        let Self { random, prose, text } = self;
        let (id, slug) = (random.below(100_000), prose.slug(random));
        let words = random.between(3, 7);
        let title = prose.phrase(random, words);
        let _ = write!(
            text,
            "<article class=\"post post--{}\" id=\"post-{id}\">\n  <header class=\"post__header\">\n    \
             <h2 class=\"post__title\"><a href=\"/articles/{id}/{slug}\">{title}</a></h2>\n    \
             <time datetime=\"2026-{:02}-{:02}\">{} days ago</time>\n  </header>\n",
            random.pick(&["news", "guide", "review", "note"]),
            random.between(1, 12),
            random.between(1, 28),
            random.between(2, 300)
        );
        for _ in 0..random.between(1, 4) {
            let _ = writeln!(text, "  <p>{}</p>", prose.paragraph(random));
        }
        text.push_str("</article>\n");
    }

    fn links(&mut self) {
        let Self { random, prose, text } = self;
        let title = prose.phrase(random, 3);
        let _ = writeln!(text, "<nav class=\"links\" aria-label=\"{title}\">\n  <ul>");
        for _ in 0..random.between(3, 9) {
            let (slug, label) = (prose.slug(random), prose.phrase(random, 3));
            let _ = writeln!(text, "    <li class=\"links__item\"><a href=\"/{slug}\">{label}</a></li>");
        }
        text.push_str("  </ul>\n</nav>\n");
    }

    fn table(&mut self) {
        let Self { random, prose, text } = self;
        let title = prose.phrase(random, 4);
        let _ = writeln!(text, "<table class=\"data\">\n  <caption>{title}</caption>");
        for _ in 0..random.between(3, 10) {
            let label = prose.phrase(random, 2);
            let (count, price) = (random.below(900), random.below(100_000));
            let (euros, cents) = (price / 100, price % 100);
            let _ = writeln!(
                text,
                "  <tr><td>{label}</td><td class=\"num\">{count}</td><td class=\"num\">€ {euros}.{cents:02}</td></tr>"
            );
        }
        text.push_str("</table>\n");
    }

    fn json(&mut self) {
        let Self { random, prose, text } = self;
        let (name, slug) = (prose.phrase(random, 2), prose.slug(random));
        let (first, second) = (random.next(), random.next());
        let _ = write!(
            text,
            "{{\"id\":\"{:08x}-{:04x}-4{:03x}-{:012x}\",\"name\":\"{name}\",\"slug\":\"{slug}\",\
             \"price\":{{\"amount\":{}.{:02},\"currency\":\"EUR\"}},\"stock\":{},\"rating\":{}.{},\
             \"createdAt\":\"2026-{:02}-{:02}T{:02}:{:02}:{:02}Z\",\"tags\":[\"{}\",\"{}\"],\"active\":{},\
             \"description\":\"{}\"}},",
            first >> 32,
            first & 0xffff,
            (first >> 16) & 0xfff,
            second >> 16,
            random.below(900),
            random.below(100),
            random.below(5000),
            random.below(5),
            random.below(10),
            random.between(1, 12),
            random.between(1, 28),
            random.below(24),
            random.below(60),
            random.below(60),
            prose.word(random),
            prose.word(random),
            random.percent(80),
            prose.sentence(random)
        );
    }

    fn script(&mut self) {
        let Self { random, prose, text } = self;
        let letters = ["e", "t", "n", "r", "i", "o", "a", "s", "c", "u", "l", "d", "f", "p", "h", "m"];
        let (a, b, c) = (random.pick(&letters), random.pick(&letters), random.pick(&letters));
        let (method, field) = (prose.identifier(random), prose.identifier(random));
        let number = random.below(5000);
        let _ = match random.below(7) {
            0 => write!(text, "function {method}({a},{b}){{return {a}.{field}({b},{number})||null}}"),
            1 => write!(
                text,
                "if({a}.{field}!=={number}&&!{b}.{method}){{{c}=new {}({a})}}",
                prose.phrase(random, 1)
            ),
            2 => write!(text, "var {a}={b}.{method}(\"{}\");{a}&&{a}.{field}.push({c});", prose.slug(random)),
            3 => write!(
                text,
                "{a}.prototype.{method}=function({b}){{for(var {c}=0;{c}<{b}.length;{c}++)this.{field}({b}[{c}])}};"
            ),
            4 => write!(
                text,
                "exports.{method}=({a},{b})=>({{...{a},{field}:{b}.{}}});",
                prose.identifier(random)
            ),
            5 => write!(text, "case\"{field}\":return void {a}.{method}({b},{number});"),
            _ => write!(text, "throw new Error(\"{}\");", prose.sentence(random)),
        };
    }

    fn style(&mut self) {
        let Self { random, prose, text } = self;
        let (block, element) = (prose.word(random), prose.word(random));
        let state = random.pick(&["", "", ":hover", "--active", "::before", " > li"]);
        let _ = writeln!(text, ".{block}__{element}{state} {{");
        for _ in 0..random.between(2, 6) {
            let (size, color) = (random.below(64), random.next() & 0xff_ffff);
            let property = random.pick(&["margin", "padding", "top", "width", "gap", "border-radius"]);
            let _ = match random.below(5) {
                0 => writeln!(text, "  color: #{color:06x};"),
                1 => writeln!(
                    text,
                    "  background: rgba({}, {}, {size}, 0.{});",
                    color >> 16,
                    color & 0xff,
                    size % 10
                ),
                2 => writeln!(
                    text,
                    "  display: {};",
                    random.pick(&["flex", "grid", "block", "inline-block", "none"])
                ),
                3 => writeln!(text, "  transition: {property} 0.{size}s ease-in-out;"),
                _ => writeln!(text, "  {property}: {size}px;"),
            };
        }
        text.push_str("}\n\n");
    }

    fn log(&mut self) {
        let Self { random, prose, text } = self;
        let agents = [
            "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 Version/18.1 Mobile Safari/604.1",
            "curl/8.9.1",
        ];
        let seconds = text.len() / 90;
        let _ = writeln!(
            text,
            "{}.{}.{}.{} - - [14/Mar/2026:{:02}:{:02}:{:02} +0000] \"{} /{}?id={} HTTP/1.1\" {} {} \"-\" \"{}\"",
            random.pick(&[10, 81, 93, 145, 203]),
            random.below(40),
            random.below(256),
            random.below(256),
            seconds / 3600 % 24,
            seconds / 60 % 60,
            seconds % 60,
            random.pick(&["GET", "GET", "GET", "POST"]),
            prose.slug(random),
            random.below(90_000),
            random.pick(&[200, 200, 200, 200, 304, 404, 500]),
            random.below(60_000),
            random.pick(&agents)
        );
    }

    fn svg(&mut self) {
        let Self { random, prose, text } = self;
        let mut tenth = |limit: usize| {
            let value = random.below(limit * 10);
            format!("{}.{}", value / 10, value % 10)
        };
        let mut path = format!("M{} {}", tenth(800), tenth(600));
        for _ in 0..6 {
            let _ = write!(
                path,
                "c{} {} {} {} {} {}",
                tenth(60),
                tenth(60),
                tenth(60),
                tenth(60),
                tenth(60),
                tenth(60)
            );
        }
        let (id, color) = (prose.slug(random), random.next() & 0xff_ffff);
        let _ = writeln!(
            text,
            "  <path id=\"{id}\" class=\"shape\" fill=\"#{color:06x}\" stroke-width=\"1.5\" d=\"{path}z\"/>"
        );
    }
}
