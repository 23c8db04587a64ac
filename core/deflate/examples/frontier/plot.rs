//! The frontier as a picture: speed to the right, compression upwards.

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
const MARGIN: f64 = 56.0;

/// An engine at a level.
#[derive(Debug)]
pub(crate) struct Row {
    engine: String,
    level: String,
    speed: f64,
    ratio: f64,
}

/// The rows of a report: one in each line.
pub(crate) fn rows(json: &str) -> Vec<Row> {
    let field = |line: &str, name: &str| {
        let rest = line.split_once(&format!("\"{name}\": "))?.1;
        Some(rest.split([',', ' ']).next()?.trim_matches('"').to_owned())
    };
    let row = |line: &str| {
        let number = |name: &str| field(line, name)?.parse().ok();
        let (engine, level) = (field(line, "engine")?, field(line, "level")?);
        Some(Row { engine, level, speed: number("mb_per_s")?, ratio: number("ratio")? })
    };
    json.lines().filter_map(row).filter(|row| row.engine != "bucket-portable").collect()
}

pub(crate) fn svg(rows: &[Row]) -> String {
    let least = rows.iter().map(|row| row.ratio).fold(f64::MAX, f64::min) * 0.98;
    let most = rows.iter().map(|row| row.ratio).fold(0.0, f64::max) * 1.01;
    // Speeds differ by factors, so their logarithms are drawn.
    let slowest = (rows.iter().map(|row| row.speed).fold(f64::MAX, f64::min) * 0.9).ln();
    let fastest = (rows.iter().map(|row| row.speed).fold(0.0, f64::max) * 1.15).ln();
    let x = |speed: f64| MARGIN + (speed.ln() - slowest) / (fastest - slowest) * (WIDTH - 2.0 * MARGIN);
    let y = |ratio: f64| HEIGHT - MARGIN - (ratio - least) / (most - least) * (HEIGHT - 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    for speed in [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0] {
        if (slowest..fastest).contains(&f64::ln(speed)) {
            line(&mut svg, (x(speed), MARGIN), (x(speed), HEIGHT - MARGIN));
            text(&mut svg, (x(speed), HEIGHT - MARGIN + 16.0), "middle", "#555", &speed.to_string());
        }
    }
    let step = 0.25;
    let first = (least / step).ceil() as u32;
    for ratio in (first..).map(|i| f64::from(i) * step).take_while(|ratio| *ratio < most) {
        line(&mut svg, (MARGIN, y(ratio)), (WIDTH - MARGIN, y(ratio)));
        text(&mut svg, (MARGIN - 6.0, y(ratio) + 4.0), "end", "#555", &ratio.to_string());
    }
    text(&mut svg, (WIDTH / 2.0, HEIGHT - 12.0), "middle", "#222", "MB per second of CPU time");
    text(&mut svg, (MARGIN, MARGIN - 20.0), "start", "#222", "input : output");
    let engines = [("zlib", "#777"), ("libdeflate", "#c60"), ("isal", "#288"), ("bucket", "#06c")];
    for (number, (engine, colour)) in engines.into_iter().enumerate() {
        let own = || rows.iter().filter(|row| row.engine == engine);
        let points: Vec<String> =
            own().map(|row| format!("{:.1},{:.1}", x(row.speed), y(row.ratio))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            points.join(" ")
        );
        for row in own() {
            let (x, y) = (x(row.speed), y(row.ratio));
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
            text(&mut svg, (x + 6.0, y - 5.0), "start", colour, &row.level);
        }
        text(&mut svg, (WIDTH - MARGIN - 90.0, MARGIN + 16.0 * number as f64), "start", colour, engine);
    }
    svg.push_str("</svg>\n");
    svg
}

fn line(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ =
        writeln!(svg, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#ddd\"/>");
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, colour: &str, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>"
    );
}
