//! Bodies unlike those used for tuning the levels: tables, bitmaps, sequences, records, small alphabets, programs.

use std::fmt::Write as _;
use std::fs;

/// Something to compress.
pub(crate) struct Body {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Body {
    /// How much larger it may become at a level, in per cent. A few kinds are beyond the engines' abilities, and listed
    /// in docs/performance.md.
    pub(crate) fn percent(&self, level: u8) -> usize {
        match (self.name.as_str(), level) {
            ("six words", 2..=7) => 12,
            ("columns that repeat", 6..=8) => 20,
            ("noisy image", 3) => 5,
            ("messages", 6..) => 9,
            _ => 3,
        }
    }

    /// The same for streams that are flushed.
    pub(crate) fn percent_flushed(&self, level: u8) -> usize {
        match (self.name.as_str(), level) {
            ("glyphs", 1) => 14,
            ("indented JSON", 7) => 6,
            _ => self.percent(level),
        }
    }
}

/// Files of packages that every Debian has; missing ones are skipped.
const REAL: [&str; 8] = [
    "/bin/bash",
    "/bin/ls",
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/include/unistd.h",
    "/usr/lib/python3.11/_pydecimal.py",
    "/usr/share/perl/5.36.0/perl5db.pl",
    "/usr/share/perl/5.36.0/unicore/Name.pl",
    "/var/lib/dpkg/status",
];

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 11) % limit
    }
}

pub(crate) fn all() -> Vec<Body> {
    let mut bodies: Vec<Body> = tables().into_iter().chain(bytes()).collect();
    for path in REAL {
        if let Ok(mut bytes) = fs::read(path) {
            bytes.truncate(400_000);
            bodies.push(Body { name: path.to_owned(), bytes });
        }
    }
    bodies
}

/// Ascending or descending numbers, alone and in rows: the first thing that people compress to see how it works.
pub(crate) fn counting() -> Vec<Body> {
    type Line = fn(u64, &mut Random) -> String;
    let rows: [(&str, u64, Line); 30] = [
        ("seq", 100_000, |i, _| format!("{}\n", i + 1)),
        ("seq from 1000", 30_000, |i, _| format!("{}\n", i + 1000)),
        ("seq from 123456", 30_000, |i, _| format!("{}\n", i + 123_456)),
        ("seq from a million", 40_000, |i, _| format!("{}\n", i + 1_000_000)),
        ("every third", 60_000, |i, _| format!("{}\n", i * 3 + 1)),
        ("every fifth", 50_000, |i, _| format!("{}\n", i * 5 + 5)),
        ("every seventh", 40_000, |i, _| format!("{}\n", i * 7)),
        ("every thousandth", 30_000, |i, _| format!("{}\n", i * 1000)),
        ("downwards", 50_000, |i, _| format!("{}\n", 50_000 - i)),
        ("squares in decimal", 30_000, |i, _| format!("{}\n", i * i)),
        ("padded", 30_000, |i, _| format!("{i:06}\n")),
        ("hexadecimal", 30_000, |i, _| format!("{i:08x}\n")),
        ("array", 30_000, |i, _| format!("{i},")),
        ("array in lines", 30_000, |i, _| format!("  {i},\n")),
        ("deep array in lines", 20_000, |i, _| format!("    {i},\n")),
        ("array of pairs", 25_000, |i, _| format!("[{i},{}],", i % 10)),
        ("array of objects", 20_000, |i, _| format!("{{\"id\":{i}}},")),
        ("objects with names", 10_000, |i, _| format!("{{\"id\":{i},\"name\":\"user{i}\"}},")),
        ("elements", 20_000, |i, _| format!("<i>{i}</i>")),
        ("addresses", 30_000, |i, _| format!("10.{}.{}.{}\n", i >> 16 & 255, i >> 8 & 255, i & 255)),
        ("statements", 8000, |i, _| format!("INSERT INTO t VALUES ({i},'name{i}',{});\n", i * 10)),
        ("pairs", 20_000, |i, _| format!("{i}:{i}\n")),
        ("three columns", 15_000, |i, _| format!("{i}\t{}\t{}\n", i + 1, i + 2)),
        ("counters", 20_000, |i, _| format!("{i},{},{}\n", i * 2, i % 7)),
        ("counter and zeros", 15_000, |i, _| format!("{i},0,0,0,0,0\n")),
        ("times and values", 20_000, |i, r| format!("{},{},ok\n", 1_700_000_000 + i * 3, r.below(1000))),
        ("milliseconds", 12_000, |i, _| format!("{} {i}\n", 1_700_000_000_000 + i * 17)),
        ("path", 15_000, |i, _| format!("M{i} {}L{} {}", i * 7 % 300, i + 1, (i + 1) * 7 % 300)),
        ("days", 20_000, |i, _| format!("2026-{:02}-{:02}\n", 1 + i / 28 % 12, 1 + i % 28)),
        ("log", 6000, |i, r| {
            let (minute, second) = (i / 60 % 60, i % 60);
            format!("2026-11-25T04:{minute:02}:{second:02}Z INFO request {i} took {} ms\n", r.below(300))
        }),
    ];
    let mut random = Random(8);
    let mut of = |name: &str, count: u64, line: Line| Body {
        name: format!("{name}, {count} times"),
        bytes: (0..count).flat_map(|i| line(i, &mut random).into_bytes()).collect(),
    };
    let mut bodies: Vec<Body> = rows.iter().map(|(name, count, line)| of(name, *count, *line)).collect();
    for count in [100, 300, 1000, 3000, 5000, 20_000] {
        bodies.extend(rows.iter().filter(|row| row.1 > count).map(|(name, _, line)| of(name, count, *line)));
    }
    bodies
}

/// Lines of text, generated from their number.
fn tables() -> Vec<Body> {
    let mut random = Random(1);
    let mut of = |name: &str, count: u64, line: &mut dyn FnMut(u64, &mut Random) -> String| Body {
        name: name.to_owned(),
        bytes: (0..count).map(|i| line(i, &mut random)).collect::<String>().into_bytes(),
    };
    vec![
        of("JSON rows", 5000, &mut |i, r| {
            format!(
                "{{\"id\":{i},\"name\":\"user{i}\",\"score\":{},\"city\":\"{}\"}},\n",
                r.below(100),
                CITIES[r.below(3) as usize]
            )
        }),
        of("indented JSON", 3000, &mut |i, _| {
            format!(
                "  {{\n    \"id\": {i},\n    \"name\": \"n{}\",\n    \"list\": [\n      {}\n    ]\n  }},\n",
                i % 9,
                i % 12
            )
        }),
        of("JSON of coordinates", 6000, &mut |i, r| {
            format!(
                "[{}.{:06},{}.{:06}],",
                8 + i / 4000,
                r.below(1_000_000),
                50 + i / 3000,
                r.below(1_000_000)
            )
        }),
        of("HTML table", 6000, &mut |i, r| {
            format!("<tr><td class=\"n\">{i}</td><td class=\"v\">{}</td><td></td></tr>\n", r.below(1000))
        }),
        of("HTML cards", 4000, &mut |_, _| {
            "<div class=\"card\"><h2>Title</h2><p>Lorem ipsum</p></div>\n".to_owned()
        }),
        of("style sheet", 5000, &mut |i, r| {
            format!(".c{i}{{margin:{}px;padding:{}px;color:#{:06x}}}\n", i % 20, i % 7, r.below(1 << 24))
        }),
        of("access log", 3000, &mut |i, r| {
            format!(
                "10.0.0.{} - - [23/Nov/2026:20:{:02}:{:02}] \"GET /i/{}.png\" 200 {}\n",
                r.below(255),
                i / 60 % 60,
                i % 60,
                r.below(99),
                r.below(50_000)
            )
        }),
        of("comma-separated values", 9000, &mut |i, r| {
            format!("{i},EUR,{}.{:02},{}\n", r.below(1000), r.below(100), r.below(10))
        }),
        of("source map", 20_000, &mut |_, r| {
            (0..5).map(|_| BASE64[r.below(64) as usize] as char).chain("AAC;".chars()).collect()
        }),
        of("identifiers", 4000, &mut |_, r| {
            format!("{:016x}{:016x}\n", r.below(u64::MAX), r.below(u64::MAX))
        }),
        of("paths", 5000, &mut |_, r| {
            format!("<path d=\"M{} {}l{},{}z\"/>", r.below(999), r.below(999), r.below(99), r.below(99))
        }),
        of("columns that repeat", 20_000, &mut |i, _| {
            let word = WORDS[(i * 7 % 6) as usize].trim_end();
            format!("{word}</td><td>{}</td><td>{}</td><td>{}\n", i * 3 % 7, i * 5 % 64, i % 48)
        }),
        of("six words", 30_000, &mut |_, r| WORDS[r.below(6) as usize].to_owned()),
    ]
}

const CITIES: [&str; 3] = ["Rome", "Oslo", "Lima"];
const WORDS: [&str; 6] = ["привет ", "сервер ", "данные ", "и ", "на ", "запрос\n"];
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn bytes() -> Vec<Body> {
    let mut random = Random(2);
    let mut of = |name: &str, length: usize, byte: &mut dyn FnMut(usize, &mut Random) -> u8| Body {
        name: name.to_owned(),
        bytes: (0..length).map(|i| byte(i, &mut random)).collect(),
    };
    let one_in = |r: &mut Random, n| r.below(n) == 0;
    let mut bodies = vec![
        of("one byte", 1 << 20, &mut |_, _| b'a'),
        of("zeros", 600_000, &mut |_, _| 0),
        of("a few zeros", 20_000, &mut |_, _| 0),
        of("sparse bitmap", 300_000, &mut |_, r| if one_in(r, 100) { 1 << r.below(8) } else { 0 }),
        of("sparser bitmap", 600_000, &mut |_, r| if one_in(r, 1000) { 1 << r.below(8) } else { 0 }),
        of("glyphs", 330_000, &mut |i, _| {
            if i % 80 < 60 { 0 } else { [0x3c, 0x42, 0x81, 0x81, 0x42, 0x3c][i / 80 % 6] }
        }),
        of("gradient", 200_000, &mut |i, _| ((i % 640 + i / 640) / 4) as u8),
        of("filtered image", 200_000, &mut |_, r| (r.below(3) as u8).wrapping_sub(1)),
        of("noisy image", 200_000, &mut |i, r| {
            ((((i % 640) * (i / 640)) >> 8) as u8).wrapping_add(r.below(4) as u8)
        }),
        of("counter", 200_000, &mut |i, _| ((i / 4) >> (i % 4 * 8)) as u8),
        of("squares", 200_000, &mut |i, _| (((i / 4) * (i / 4)) >> (24 - i % 4 * 8)) as u8),
        of("printable noise", 100_000, &mut |_, r| 32 + r.below(95) as u8),
        of("base64", 100_000, &mut |_, r| BASE64[r.below(64) as usize]),
        of("noise", 60_000, &mut |_, r| r.below(256) as u8),
        of("period of 3", 200_000, &mut |i, _| b"abc"[i % 3]),
    ];
    for count in [2, 3, 4, 8, 16] {
        bodies.push(of(&format!("{count} letters"), 100_000, &mut |_, r| b'A' + r.below(count) as u8));
    }
    bodies.extend([runs(), records(), messages(), samples(), pages()]);
    bodies
}

fn body(name: &str, bytes: Vec<u8>) -> Body {
    Body { name: name.to_owned(), bytes }
}

fn runs() -> Body {
    let mut random = Random(3);
    let run = |_| vec![random.below(4) as u8 + b'a'; random.below(29) as usize + 1];
    body("runs", (0..10_000).flat_map(run).collect())
}

/// Fields of fixed width.
fn records() -> Body {
    let mut random = Random(4);
    let record = |i: u32| {
        let fields = [i, 1_700_000_000 + i * 3, i % 7, random.below(1 << 32) as u32];
        fields.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>()
    };
    body("records", (0..12_000).flat_map(record).collect())
}

/// In protobuf's layout.
fn messages() -> Body {
    let mut random = Random(5);
    let message = |i: u32| {
        let mut text = String::new();
        write!(text, "\u{8}{}\u{12}\u{8}name{:04}\u{18}", (i % 128) as u8 as char, random.below(3000))
            .expect("a string");
        let value = random.below(1 << 20) as u32;
        [&[0x0a, text.len() as u8 + 4][..], text.as_bytes(), &value.to_le_bytes()].concat()
    };
    body("messages", (0..9000).flat_map(message).collect())
}

/// Sound: a wave and a little noise.
fn samples() -> Body {
    let mut random = Random(6);
    let sample = |i: u32| {
        let wave = (f64::from(i) / 20.0).sin() * 8000.0;
        (wave as i16 + random.below(100) as i16).to_le_bytes()
    };
    body("samples", (0..80_000).flat_map(sample).collect())
}

/// A database: short rows, and the rest of each page empty.
fn pages() -> Body {
    let mut random = Random(7);
    let page = |_| {
        let rows = 20 + random.below(180) as u32;
        let mut page: Vec<u8> =
            (0..rows).flat_map(|i| format!("\r\0{}row{i}", i as u8 as char).into_bytes()).collect();
        page.resize(4096, 0);
        page
    };
    body("pages", (0..100).flat_map(page).collect())
}
