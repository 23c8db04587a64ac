//! The table of `hasten bench tls --server haproxy-aws-lc`: three HAProxys in a line, since their rounds were shared.

use hasten_evidence::paired::{Estimate, Pair, ratio};
use serde::Deserialize;

use super::{Results, Side};

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    server: String,
    cert: String,
    protocol: String,
    group: String,
    tickets: String,
    concurrency: u32,
    stock: Side,
    hasten: Side,
    cpu_ratio: Estimate,
    pairs: Vec<Pair>,
}

/// Runs with another TLS library are kept by this name.
pub(super) const PEER: &str = "peer";
/// The same without AVX-512.
pub(super) const PEER_WITHOUT_AVX512: &str = "peer-without-avx512";

pub(super) const SERVER: &str = "haproxy-aws-lc";

impl Row {
    fn is_same_case(&self, other: &Self) -> bool {
        let case = |row: &Self| {
            let texts = [&row.cert, &row.protocol, &row.group, &row.tickets].map(String::clone);
            (texts, row.concurrency)
        };
        case(self) == case(other)
    }

    /// OpenSSL by AWS-LC, in the rounds of this row and of AWS-LC's; `None` if they were not the same.
    fn against(&self, peer: &Self) -> Option<Estimate> {
        let is_shared = |(own, peer): (&Pair, &Pair)| own.hasten == peer.hasten;
        let pairs = || self.pairs.iter().zip(&peer.pairs);
        let are_shared = self.pairs.len() == peer.pairs.len() && pairs().all(is_shared);
        let between = |(own, peer): (&Pair, &Pair)| Pair { stock: own.stock, hasten: peer.stock };
        if are_shared { ratio(&pairs().map(between).collect::<Vec<_>>()) } else { None }
    }
}

/// A line for each case, with whoever needs least in bold type.
pub(super) fn everything(results: &Results<Row>) -> String {
    let mut text = format!(
        "{}. CPU µs of a handshake with one request; an interval holds its ratio in 95 of 100 repetitions.\n\n\
         | certificate | protocol | group | conn. | OpenSSL | AWS-LC | hasten | OpenSSL ÷ AWS-LC | OpenSSL ÷ hasten | AWS-LC ÷ hasten |\n\
         |---|---|---|---:|---:|---:|---:|---:|---:|---:|\n",
        results.circumstances()
    );
    for peer in results.rows.iter().filter(|row| row.server == SERVER) {
        let own = results.rows.iter().find(|row| row.server == "haproxy" && row.is_same_case(peer));
        let Some((own, between)) = own.and_then(|own| Some((own, own.against(peer)?))) else { continue };
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
            peer.cert.to_uppercase(),
            peer.protocol.replace("tls", "TLS "),
            peer.group.to_uppercase(),
            peer.concurrency,
            costs([&own.stock, &peer.stock, &peer.hasten]),
            estimate(between),
            estimate(own.cpu_ratio),
            estimate(peer.cpu_ratio),
        );
    }
    text
}

fn costs(sides: [&Side; 3]) -> String {
    let least = sides.iter().map(|side| side.server_cpu_us_per_op).fold(f64::INFINITY, f64::min);
    let cell = |side: &Side| match side.server_cpu_us_per_op {
        cost if cost == least => format!("**{cost:.0}**"),
        cost => format!("{cost:.0}"),
    };
    sides.map(cell).join(" | ")
}

fn estimate(Estimate { value, low, high }: Estimate) -> String {
    format!("{value:.2} [{low:.2}, {high:.2}]")
}
