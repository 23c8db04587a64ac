//! Which devices a process is told to try: `[devices]`, the variables, and the host's verdict.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use hasten_plan::devices::{Asked, Opened, Outlook};
use hasten_plan::{Config, ConfigError, Plan, Side, Surroundings};
use hasten_probe::{Cpu, Environment, Probe, Program};

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("hasten.toml"))
}

fn complaint(error: &ConfigError) -> String {
    format!("{error}; {}", error.fix())
}

/// Surroundings in which the gzip library is installed.
fn installed() -> (tempfile::TempDir, Surroundings) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("libhasten_gzip.so"), "").unwrap();
    let library_directory = Some(directory.path().to_owned());
    (directory, Surroundings { library_directory, ..Surroundings::default() })
}

fn plan(config: &Config, surroundings: &Surroundings) -> Plan {
    let program = Program::inspect(OsStr::new("/bin/sh"), &Environment::default()).unwrap();
    Plan::new(&Cpu::default(), &program, config, surroundings)
}

/// One QAT that is up, and nothing else.
fn host() -> tempfile::TempDir {
    let host = tempfile::tempdir().unwrap();
    let qat = host.path().join("sys/bus/pci/devices/0000:6b:00.0");
    fs::create_dir_all(qat.join("qat")).unwrap();
    for (name, text) in [
        ("vendor", "0x8086"),
        ("device", "0x4940"),
        ("qat/state", "up"),
        ("sriov_numvfs", "0"),
        ("sriov_totalvfs", "16"),
    ] {
        fs::write(qat.join(name), text).unwrap();
    }
    symlink("../../../../bus/pci/drivers/4xxx", qat.join("driver")).unwrap();
    host
}

fn outlooks_of(file: &str, surroundings: &Surroundings, host: &Path) -> Vec<Outlook> {
    let config = parse(file).unwrap();
    let mut plan = plan(&config, surroundings);
    plan.look_at_devices(|| Probe::with_root(host).devices(), &config, surroundings);
    plan.outlooks
}

fn against(outlook: &Outlook) -> Vec<&str> {
    let against = outlook.reasons.iter().filter(|reason| reason.side == Side::Against);
    against.map(|reason| reason.text.as_str()).collect()
}

#[test]
fn the_file_says_what_the_variables_can_say() {
    let folder = tempfile::tempdir().unwrap();
    let file = |switch: &str| {
        let libraries = folder.path().display();
        format!(
            "[devices]\nuse = {switch}\ntimeout_ms = 7\nretry_ms = [100, 5_000]\nlibraries = '{libraries}'"
        )
    };
    let (_installed, surroundings) = installed();
    let variables = |file: &str, surroundings: &Surroundings| {
        let environment = plan(&parse(file).unwrap(), surroundings).environment.into_iter();
        let ours = environment.filter(|(name, _)| name.starts_with("HASTEN_DEVICE"));
        ours.map(|(name, value)| format!("{name}={}", value.unwrap().to_string_lossy())).collect::<Vec<_>>()
    };
    let real = folder.path().canonicalize().unwrap();
    let others = [
        "HASTEN_DEVICE_TIMEOUT_MS=7".to_owned(),
        "HASTEN_DEVICE_RETRY_MS=100-5000".to_owned(),
        format!("HASTEN_DEVICE_LIBRARIES={}", real.display()),
    ];
    for (switch, value) in [("'auto'", "auto"), ("'off'", "off"), ("['qpl', 'qatzip']", "qpl,qatzip")] {
        let expected: Vec<_> =
            [format!("HASTEN_DEVICES={value}")].into_iter().chain(others.clone()).collect();
        assert_eq!(variables(&file(switch), &surroundings), expected);
    }
    assert_eq!(variables("", &surroundings), [] as [&str; 0]);
    let own = Surroundings {
        devices: Some("auto".into()),
        device_timeout: Some("9".into()),
        device_retry: Some("1-2".into()),
        device_libraries: Some("/usr/lib".into()),
        ..surroundings.clone()
    };
    assert_eq!(variables(&file("'off'"), &own), [] as [&str; 0], "the environment wins");
    let off = format!("{}\n[gzip]\nenabled = false\n[node]\nenabled = false", file("'auto'"));
    assert_eq!(variables(&off, &surroundings), [] as [&str; 0], "nothing asks devices");
    assert_eq!(parse(&file("'auto'")).unwrap().devices.asked, Some(Asked::Auto));
}

#[test]
fn the_file_is_refused_with_its_line() {
    for (text, expected) in [
        (
            "timeout-ms = 5",
            "hasten.toml:2: unknown key `timeout-ms` in [devices]; did you mean `timeout_ms`?",
        ),
        ("use = ['qatzp']", "hasten.toml:2: `use`: unknown engine `qatzp`; did you mean `qatzip`?"),
        (
            "use = ['dml']",
            "hasten.toml:2: `use`: no accelerator hands work to `dml`; use one of qatzip, qpl, qat",
        ),
        (
            "use = ['auto']",
            "hasten.toml:2: `use`: `auto` stands among engines; write either auto alone, or names of engines",
        ),
        ("use = []", "hasten.toml:2: `use` must be \"off\", \"auto\" or a list such as [\"qatzip\"], not []"),
        (
            "use = true",
            "hasten.toml:2: `use` must be \"off\", \"auto\" or a list such as [\"qatzip\"], not true",
        ),
        (
            "timeout_ms = 10_001",
            "hasten.toml:2: `timeout_ms` must be a number of milliseconds from 1 to 10000, not 10_001",
        ),
        (
            "retry_ms = [500, 100]",
            "hasten.toml:2: `retry_ms` must be two numbers of milliseconds, such as [250, 30000], from 1 to \
             3600000, not [500, 100]",
        ),
        (
            "libraries = '/no/such/folder'",
            "hasten.toml:2: `libraries`: cannot find /no/such/folder: No such file or directory (os error 2); name a \
             folder with the devices' libraries, or unset it to use the system's",
        ),
    ] {
        let said = complaint(&parse(&format!("[devices]\n{text}")).expect_err(text));
        // A wrong value is repeated in its fix.
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn variables_that_the_libraries_would_ignore_are_refused() {
    let of = |set: fn(&mut Surroundings) -> &mut Option<std::ffi::OsString>, value: &str| {
        let mut surroundings = Surroundings::default();
        *set(&mut surroundings) = Some(value.into());
        surroundings.validate().map_err(|error| complaint(&error))
    };
    let switch = |value: &str| of(|all| &mut all.devices, value);
    for good in ["off", "0", " auto ", "qatzip", "qpl, qatzip,", "qat"] {
        assert_eq!(switch(good), Ok(()));
    }
    assert_eq!(
        switch("qatzip,qlp"),
        Err("HASTEN_DEVICES: unknown engine `qlp`; did you mean `qpl`?".to_owned())
    );
    assert_eq!(switch("atuo"), Err("HASTEN_DEVICES: unknown engine `atuo`; did you mean `auto`?".to_owned()));
    assert!(switch(",").unwrap_err().contains("names no engine"));
    for good in ["1", "10000", " 20 "] {
        assert_eq!(of(|all| &mut all.device_timeout, good), Ok(()));
    }
    for odd in ["0", "10001", "20ms", "-1"] {
        assert_eq!(
            of(|all| &mut all.device_timeout, odd),
            Err(format!(
                "HASTEN_DEVICE_TIMEOUT_MS: `{odd}` is no number of milliseconds from 1 to 10000; write such a number, \
                 or unset it for the default"
            ))
        );
    }
    for good in ["250-30000", "1-1", "5 - 3600000"] {
        assert_eq!(of(|all| &mut all.device_retry, good), Ok(()));
    }
    for odd in ["250", "0-5", "50-5", "1-3600001", "-"] {
        let said = of(|all| &mut all.device_retry, odd).unwrap_err();
        assert!(
            said.starts_with(&format!("HASTEN_DEVICE_RETRY_MS: `{odd}` is not FIRST-LONGEST: ")),
            "{said}"
        );
        assert!(said.ends_with("write such as 250-30000, or unset it for that default"), "{said}");
    }
}

#[test]
fn libraries_come_from_where_nobody_else_can_put_one() {
    let said = |path: &Path| {
        let surroundings = Surroundings { device_libraries: Some(path.into()), ..Surroundings::default() };
        surroundings.validate().map_err(|error| complaint(&error)).err().unwrap_or_default()
    };
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("libraries");
    fs::create_dir(&folder).unwrap();
    let mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    mode(&folder, 0o755);
    assert_eq!(said(&folder), "");
    let shown = folder.canonicalize().unwrap();
    mode(&folder, 0o1777);
    assert_eq!(
        said(&folder),
        format!(
            "HASTEN_DEVICE_LIBRARIES: others may write to {0} (mode 1777), and so put code of theirs into the server; \
             chmod go-w {0}",
            shown.display()
        )
    );
    mode(&folder, 0o755);
    mode(place.path(), 0o770);
    assert!(said(&folder).contains("others may write"), "the folder could be replaced");
    mode(place.path(), 0o1777);
    assert_eq!(said(&folder), "", "as in /tmp");
    let file = folder.join("file");
    fs::write(&file, "").unwrap();
    assert!(said(&file).contains("is not a folder"));
    assert!(said(&folder.join("none")).contains("cannot find"));
    assert!(said(Path::new("libraries")).contains("is not an absolute path"));
}

#[test]
fn each_engine_is_tried_or_there_is_a_reason() {
    let (_installed, surroundings) = installed();
    let host = host();
    assert_eq!(outlooks_of("", &surroundings, host.path()), [], "nobody said a word about devices");
    let all = outlooks_of("[devices]\nuse = ['qatzip', 'qpl', 'qat']", &surroundings, host.path());
    let tried: Vec<_> = all.iter().map(|outlook| (outlook.engine, outlook.is_tried())).collect();
    assert_eq!(tried, [("qatzip", true), ("qpl", false), ("qat", false)]);
    assert!(all[0].reasons.iter().any(|reason| reason.text == "the QAT device 0000:6b:00.0 is up"));
    // No virtual functions: the process would find out, but the user should not have to.
    let doubt = all[0].reasons.iter().find(|reason| reason.side == Side::Idle).unwrap();
    assert!(doubt.text.starts_with("0000:6b:00.0: ") && doubt.fix.is_some(), "{doubt:?}");
    assert_eq!(against(&all[1]), ["there is no IAA device"]);
    assert_eq!(against(&all[2]), ["tls is off, whose work it would do"]);

    fs::write(host.path().join("sys/bus/pci/devices/0000:6b:00.0/qat/state"), "down").unwrap();
    let auto = Surroundings { devices: Some("auto".into()), ..surroundings.clone() };
    let all = outlooks_of("[devices]\nuse = 'off'", &auto, host.path());
    assert_eq!(against(&all[0]), ["no QAT device is up"]);
    let fix = all[0].reasons.iter().find_map(|reason| reason.fix.as_deref()).unwrap();
    assert!(fix.contains("qat/state"), "{fix}");

    let all = outlooks_of("[devices]\nuse = 'off'", &surroundings, host.path());
    assert!(
        all.iter().all(|outlook| against(outlook) == ["[devices] use in hasten.toml switches devices off"])
    );
    let named = Surroundings { devices: Some("qpl".into()), ..surroundings };
    let all = outlooks_of("", &named, host.path());
    assert_eq!(against(&all[0]), ["HASTEN_DEVICES=qpl does not name it"]);
}

#[test]
fn only_the_libraries_of_engines_to_try_are_opened() {
    let (_installed, surroundings) = installed();
    let (host, config) = (host(), parse("[devices]\nuse = 'auto'").unwrap());
    let said = |opened: Result<Opened, String>| {
        let mut plan = plan(&config, &surroundings);
        plan.look_at_devices(|| Probe::with_root(host.path()).devices(), &config, &surroundings);
        plan.look_at_libraries(|engine| {
            assert_eq!(engine, "qatzip", "there is a device for it, and an accelerator");
            Some(opened.clone())
        });
        (plan.outlooks[0].is_tried(), plan.outlooks[0].reasons.last().unwrap().text.clone())
    };
    let opened = |is_simulated| said(Ok(Opened { name: "libqatzip.so.3", is_simulated }));
    assert_eq!(opened(false), (true, "libqatzip.so.3 opens".into()));
    let simulated = "libqatzip.so.3 opens, and is simulated: no device is behind it";
    assert_eq!(opened(true), (true, simulated.into()));
    assert_eq!(said(Err("it is not installed".into())), (false, "it is not installed".into()));
}

#[test]
fn a_cpu_without_lanes_gets_the_tls_library_for_a_device() {
    let (installed, surroundings) = installed();
    fs::write(installed.path().join("libhasten_tls.so"), "").unwrap();
    let tls = |file: &str, variable: &str| {
        let devices = Some(variable).filter(|list| !list.is_empty()).map(Into::into);
        // This invented CPU has no features.
        let plan = plan(&parse(file).unwrap(), &Surroundings { devices, ..surroundings.clone() });
        let verdict = plan.accelerators.iter().find(|verdict| verdict.name == "tls").unwrap().clone();
        let lanes = verdict.reasons.iter().find(|reason| reason.text.contains("AVX-512")).unwrap().clone();
        (lanes.side, lanes.text)
    };
    assert_eq!(tls("", "").0, Side::Against);
    assert_eq!(tls("", "qatzip,qpl").0, Side::Against, "these are not for TLS");
    assert_eq!(tls("[devices]\nuse = ['qat']", "off").0, Side::Against, "the environment wins");
    let (side, text) = tls("", "qatzip,qat");
    assert_eq!(side, Side::Idle);
    assert!(
        text.ends_with(": nothing but RSA signatures, by QAT, for which HASTEN_DEVICES=qatzip,qat asks"),
        "{text}"
    );
    assert_eq!(tls("[devices]\nuse = 'auto'", "").0, Side::Idle);
}
