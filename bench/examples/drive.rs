//! The load driver alone: full handshakes against any TLS server that answers `GET /` with a Content-Length.
//!
//! ```text
//! cargo run --release -p hasten-bench --example drive -- --connect 127.0.0.1:9443 -c 256 -d 5 --pid 1234
//! ```

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Parser;
use hasten_bench::cpu::CpuTimes;
use hasten_bench::drive::{self, Cipher, Group, Load, Outcome, Protocol, Target};

/// Drive full TLS handshakes, one HTTP request each, and print rate, latency and failures
#[derive(Parser)]
struct Args {
    /// Address of the server
    #[arg(long, value_name = "ADDRESS:PORT")]
    connect: SocketAddr,

    /// Connections at the same time
    #[arg(short, long, default_value_t = 1)]
    concurrency: usize,

    /// Threads of the driver
    #[arg(short, long, default_value_t = 1)]
    threads: usize,

    /// Seconds to run
    #[arg(short, long, default_value_t = 5.0)]
    duration: f64,

    /// tls1.3 or tls1.2
    #[arg(long, default_value_t = Protocol::Tls13)]
    tls: Protocol,

    /// x25519, p-256 or p-384
    #[arg(long, default_value_t = Group::X25519)]
    group: Group,

    /// aes-128-gcm, aes-256-gcm or chacha20-poly1305
    #[arg(long)]
    cipher: Option<Cipher>,

    /// Exact body that the server must answer
    #[arg(long)]
    body: Option<String>,

    /// Process whose CPU time, children included, is divided by the operations
    #[arg(long)]
    pid: Option<u32>,

    /// CPUs to keep the driver's threads on
    #[arg(long, value_delimiter = ',')]
    cpu: Vec<usize>,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse();
    let target =
        Target { address: args.connect, certificate: None, body: args.body.clone().map(String::into_bytes) };
    let load = Load {
        concurrency: args.concurrency,
        threads: args.threads,
        duration: Duration::from_secs_f64(args.duration),
        protocol: args.tls,
        group: args.group,
        cipher: args.cipher,
        cpus: args.cpu,
        ..Load::default()
    };
    let before = args.pid.map(CpuTimes::of_tree).unwrap_or_default();
    let outcome = drive::run(&target, &load)?;
    // The scheduler accounts for the last slice when the server sleeps again.
    thread::sleep(Duration::from_millis(5));
    let server_cpu = args.pid.map(|pid| CpuTimes::of_tree(pid).since(&before));
    print(&outcome, server_cpu);
    Ok(if outcome.failures.total() == 0 && outcome.ops > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(outcome: &Outcome, server_cpu: Option<Duration>) {
    let quantile = |q| outcome.latency.value_at_quantile(q);
    let per_op = |time: Duration| time.as_secs_f64() * 1e6 / outcome.ops.max(1) as f64;
    println!("handshakes/s   {:.0}  ({} in {:.2?})", outcome.ops_per_s(), outcome.ops, outcome.elapsed);
    println!("latency µs     p50 {}  p99 {}  p99.9 {}", quantile(0.5), quantile(0.99), quantile(0.999));
    if let Some(cpu) = server_cpu {
        let busy = cpu.as_secs_f64() / outcome.elapsed.as_secs_f64() * 100.0;
        println!("server CPU     {:.1} µs per handshake  ({busy:.0} % of one CPU)", per_op(cpu));
    }
    let busy = outcome.driver_cpu.as_secs_f64() / outcome.elapsed.as_secs_f64() * 100.0;
    println!("driver CPU     {:.1} µs per handshake  ({busy:.0} % of one CPU)", per_op(outcome.driver_cpu));
    println!("failures       {}", outcome.failures);
}
