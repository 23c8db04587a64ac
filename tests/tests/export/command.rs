//! How the command starts, fails and ends.

use std::net::TcpListener;
use std::process::{Command, Output};

use hasten_tests::product;
use rustix::process::Signal;

use crate::exporter::{Exporter, Scrape};

fn export(arguments: &[&str]) -> Output {
    Command::new(product::hasten()).arg("export").args(arguments).output().expect("the command starts")
}

/// It fails with this code, and its message contains all of this.
#[track_caller]
fn fails(arguments: &[&str], code: i32, words: &[&str]) {
    let output = export(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{said}");
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
}

#[test]
fn a_port_that_is_taken_is_named_with_a_way_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    fails(&["--listen", &address], 1, &[&address, "in use", "ss -ltnp", "--listen 127.0.0.1:"]);
}

#[test]
fn addresses_that_others_can_reach_have_to_be_meant() {
    fails(&["--listen", "0.0.0.0:0"], 1, &["0.0.0.0:0 can be reached from other hosts", "--allow-remote"]);
    fails(&["--listen", "[::]:0"], 1, &["--allow-remote"]);
    // An address from the network reserved for documentation, which no host has.
    fails(&["--listen", "192.0.2.1:9469", "--allow-remote"], 1, &["192.0.2.1:9469", "ip address"]);
    fails(&["--listen", "9469"], 2, &["127.0.0.1:9469"]);
    fails(&["--once", "--allow-remote"], 2, &["cannot be used with"]);
}

#[test]
fn once_prints_the_metrics_and_ends() {
    let output = export(&["--once"]);
    assert!(output.status.success());
    let scrape = Scrape::read(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(scrape.sum("hasten_build_info", &[]), 1.0);
    assert!(scrape.0.contains_key("hasten_processes_denied"), "{scrape:?}");
}

#[test]
fn a_signal_ends_it_in_good_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let exporter = Exporter::start();
        assert!(exporter.get("/healthz", "*/*") == "ok\n");
        assert_eq!(exporter.stop(signal).code(), Some(0), "{signal:?}");
    }
}

#[test]
fn devices_of_the_host_are_told_as_the_kernel_has_them() {
    let root = tempfile::tempdir().unwrap();
    let device = root.path().join("sys/bus/pci/devices/0000:6b:00.0");
    std::fs::create_dir_all(device.join("qat")).unwrap();
    for (file, text) in
        [("vendor", "0x8086\n"), ("device", "0x4940\n"), ("numa_node", "1\n"), ("qat/state", "up\n")]
    {
        std::fs::write(device.join(file), text).unwrap();
    }
    std::os::unix::fs::symlink("../../../../bus/pci/drivers/4xxx", device.join("driver")).unwrap();
    let debug = root.path().join("sys/kernel/debug/qat_4xxx_0000:6b:00.0/telemetry");
    std::fs::create_dir_all(&debug).unwrap();
    std::fs::write(debug.join("control"), "1\n").unwrap();
    std::fs::write(debug.join("device_data"), "sample_cnt 7\nutil_pke0 37\nutil_cpr0 0\n").unwrap();

    let exporter = Exporter::with(Command::new(product::hasten()).env("HASTEN_SYSFS_ROOT", root.path()));
    let up = "hasten_device_up{device=\"0000:6b:00.0\",kind=\"qat\",numa=\"1\"}";
    let busy = "hasten_device_utilization_ratio{device=\"0000:6b:00.0\",slice=\"pke0\"}";
    let scrape = exporter.scrape();
    assert_eq!((scrape.0.get(up), scrape.0.get(busy)), (Some(&1.0), Some(&0.37)), "{scrape:#?}");
    std::fs::write(device.join("qat/state"), "down\n").unwrap();
    exporter.scrape_until("the device to be down", |scrape| scrape.0.get(up) == Some(&0.0));
}
