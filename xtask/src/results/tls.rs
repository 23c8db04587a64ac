//! The tables of `hasten bench tls`.

use hasten_evidence::report::time;
use serde::Deserialize;

use super::bench::Brief;
use super::peer::SERVER;
use super::{Ratio, Results, Side};

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    server: String,
    cert: String,
    protocol: String,
    #[serde(default = "x25519")]
    group: String,
    tickets: String,
    concurrency: u32,
    pub(super) stock: Side,
    pub(super) hasten: Side,
    cpu_ratio: Ratio,
    verdict: String,
}

/// The group of results that were measured when there was no other.
fn x25519() -> String {
    "x25519".to_owned()
}

/// Runs with Envoy alone are kept by this name, beside those with the servers of the distribution.
pub(super) const ENVOY: &str = "envoy";
/// Runs with another OpenSSL than Debian 12's are kept by this name and its series.
pub(super) const REACH: &str = "reach-openssl";

impl Row {
    pub(super) fn is_envoys(&self) -> bool {
        self.server == ENVOY
    }

    fn is_usual(&self, cert: &str, group: &str) -> bool {
        let is_wanted = self.cert == cert && self.group == group;
        is_wanted && self.protocol == "tls1.3" && self.tickets == "on" && self.concurrency > 1
    }

    /// The costs, and their ratio.
    fn cell(&self) -> String {
        let [stock, hasten] = [&self.stock, &self.hasten].map(|side| time(side.server_cpu_us_per_op));
        let Ratio { value, low, high } = self.cpu_ratio;
        format!("{stock} → {hasten}, **{value:.2}** [{low:.2}, {high:.2}]")
    }

    /// The case in the words of the short table.
    pub(super) fn brief(&self) -> Option<Brief<'_>> {
        let connections = if self.concurrency == 1 { "connection" } else { "connections" };
        Some(Brief {
            order: 0,
            what: format!(
                "{}, {} handshake and a request, {}{}, {} {connections}",
                self.server,
                self.protocol.replace("tls", "TLS "),
                self.cert.to_uppercase(),
                if self.group == x25519() {
                    String::new()
                } else {
                    format!(" by {}", self.group.to_uppercase())
                },
                self.concurrency
            ),
            sides: [&self.stock, &self.hasten].map(|side| time(side.server_cpu_us_per_op)),
            ratio: &self.cpu_ratio,
            verdict: &self.verdict,
        })
    }
}

/// One line for each system and usual certificate: handshakes by TLS 1.3 with tickets and many connections, in a column for
/// each key exchange. Servers that are there for comparison have their table elsewhere.
pub(super) fn systems<'a>(results: impl IntoIterator<Item = &'a Results<Row>>) -> String {
    const GROUPS: [&str; 2] = ["x25519", "x25519mlkem768"];
    let mut text = format!(
        "| system | CPU | certificate | {} |\n|---|---|---|---|---|\n",
        GROUPS.map(str::to_uppercase).join(" | ")
    );
    for results in results {
        let cpu = results.fact("cpu").replace("(R)", "").replace(" Processor", "");
        let hidden = results.host.get("hidden").map(|what| format!(" without {what}")).unwrap_or_default();
        for cert in ["rsa-2048", "p-256"] {
            let usual =
                |group| results.rows.iter().find(|row| row.is_usual(cert, group) && row.server != SERVER);
            let cells = GROUPS.map(usual);
            let [classical, hybrid] = cells.map(|row| row.map_or_else(|| "–".to_owned(), Row::cell));
            if let Some(row) = cells.into_iter().flatten().next() {
                let system = system(results, &row.server);
                let cert = cert.to_uppercase();
                text += &format!("| {system} | {cpu}{hidden} | {cert} | {classical} | {hybrid} |\n");
            }
        }
    }
    text
}

/// A server and the library that it uses.
fn system(results: &Results<Row>, server: &str) -> String {
    // Where servers with several libraries were compared, each has a fact of its own.
    let own = format!("{server}_openssl");
    let library = results.host.get(&own).map_or_else(|| results.fact("openssl"), String::as_str);
    format!("{server}, {library}")
}

/// Every row of the report.
pub(super) fn everything(results: &Results<Row>) -> String {
    let mut text = format!(
        "{}. Stock → hasten; the interval holds the ratio in 95 of 100 repetitions.\n\n\
         | server | certificate | protocol | group | tickets | conn. | CPU µs | stock ÷ hasten | handshakes/s | p50 ms | p99 ms | verdict |\n\
         |---|---|---|---|---|---:|---:|---:|---:|---:|---:|---|\n",
        results.circumstances()
    );
    for row in &results.rows {
        let (stock, hasten) = (&row.stock, &row.hasten);
        let ms = |us: u64| us as f64 / 1000.0;
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {:.0} → {:.0} | {:.2} [{:.2}, {:.2}] | {:.0} → {:.0} | {:.2} → {:.2} | {:.2} → {:.2} | {} |\n",
            row.server,
            row.cert.to_uppercase(),
            row.protocol.replace("tls", "TLS "),
            row.group.to_uppercase(),
            row.tickets,
            row.concurrency,
            stock.server_cpu_us_per_op,
            hasten.server_cpu_us_per_op,
            row.cpu_ratio.value,
            row.cpu_ratio.low,
            row.cpu_ratio.high,
            stock.ops_per_s,
            hasten.ops_per_s,
            ms(stock.p50_us),
            ms(hasten.p50_us),
            ms(stock.p99_us),
            ms(hasten.p99_us),
            row.verdict,
        );
    }
    text
}
