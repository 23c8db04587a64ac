use super::*;
use std::path::Path;

struct Machine(tempfile::TempDir);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            let path = machine.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replace("ROOT", machine.0.path().to_str().unwrap())).unwrap();
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn unit(&self, name: &str) -> Result<Unit, UnitError> {
        Unit::read(name, &[self.path("etc"), self.path("lib")])
    }
}

fn words(unit: &Unit) -> Vec<&str> {
    unit.command.iter().map(|word| word.to_str().unwrap()).collect()
}

const NGINX: &str = "\
[Unit]
Description=A server
ExecStart=/not/this

[Service]
Type=forking
PIDFile=/run/nginx.pid
ExecStartPre=/usr/sbin/nginx -t -q
ExecStart=/usr/sbin/nginx -g 'daemon on; master_process on;'
PrivateTmp=true
TimeoutStopSec=5

[Install]
WantedBy=multi-user.target
";

#[test]
fn the_command_of_a_unit_is_found_by_its_name() {
    let machine = Machine::new(&[("lib/nginx.service", NGINX)]);
    for name in ["nginx", "nginx.service", machine.path("lib/nginx.service").to_str().unwrap()] {
        let unit = machine.unit(name).unwrap();
        assert_eq!(words(&unit), ["/usr/sbin/nginx", "-g", "daemon on; master_process on;"], "{name}");
        assert_eq!(unit.name, "nginx.service");
        assert_eq!(unit.left_out, ["ExecStartPre", "PrivateTmp"]);
    }
    let missing = machine.unit("redis").unwrap_err();
    assert!(missing.to_string().starts_with("there is no unit redis.service in "), "{missing}");
}

#[test]
fn drop_ins_add_and_take_back() {
    let machine = Machine::new(&[
        (
            "lib/app.service",
            "[Service]\nExecStart=/bin/app one\nEnvironment=A=1 B=2\nLimitNOFILE=1024:4096\n",
        ),
        ("lib/app.service.d/20-b.conf", "[Service]\nEnvironment=B=4\n"),
        ("etc/app.service.d/10-a.conf", "[Service]\nExecStart=\nExecStart=/bin/app two\nEnvironment=B=3\n"),
        ("lib/app.service.d/10-a.conf", "[Service]\nEnvironment=A=hidden\n"),
    ]);
    let unit = machine.unit("app").unwrap();
    assert_eq!(words(&unit), ["/bin/app", "two"]);
    let variable = |name: &str| unit.environment[&OsString::from(name)].to_str().unwrap().to_owned();
    assert_eq!((variable("A"), variable("B")), ("1".into(), "4".into()));
    assert_eq!(unit.open_files, Some(1024));
}

#[test]
fn environment_words_and_specifiers_are_put_in() {
    let machine = Machine::new(&[
        ("default", "# comment\nOPTIONS=\"--fast --port 80\"\nNAME='x y'\n"),
        (
            "lib/app@.service",
            "[Service]\n\
             Environment=\"GREETING=good day\" PLAIN=1\n\
             EnvironmentFile=-/nonexistent\nEnvironmentFile=ROOT/default\nUnsetEnvironment=PLAIN\n\
             WorkingDirectory=-/srv/%i\nUser=app\nGroup=web\n\
             ExecStart=-/bin/app \\\n  $OPTIONS \\\n# in between\n  --name=${NAME} '${GREETING}' $$5 \"a\\x20b\" %p-%i 100%%\n",
        ),
    ]);
    let unit = machine.unit("app@blue").unwrap();
    let expected =
        ["/bin/app", "--fast", "--port", "80", "--name=x y", "good day", "$5", "a b", "app-blue", "100%"];
    assert_eq!(words(&unit), expected);
    assert_eq!(unit.directory.as_deref(), Some(Path::new("/srv/blue")));
    assert!(!unit.environment.contains_key(&OsString::from("PLAIN")));
    let user = unit.account("root:x:0:0::/:\napp:x:107:111::/:\n", "web:x:33:\n").unwrap();
    assert_eq!(user, Some(User { uid: 107, gid: 33 }));
    assert_eq!(
        unit.account("root:x:0:0::/:\n", "").unwrap_err().to_string(),
        "app@blue.service runs as app, who is not in /etc/passwd"
    );
}

#[test]
fn what_is_wrong_with_a_unit_is_said() {
    let error = |text: &str| {
        let machine = Machine::new(&[("lib/x.service", text)]);
        let error = machine.unit("x").unwrap_err().to_string();
        error.replace(machine.0.path().to_str().unwrap(), "")
    };
    assert_eq!(error("[Service]\nUser=x\n"), "x.service has no ExecStart= in [Service]");
    assert_eq!(
        error("[Service]\nExecStart=/a\nExecStart=/b\n"),
        "x.service has 2 ExecStart= lines, of which only one can be tuned"
    );
    assert_eq!(
        error("[Service]\nExecStart\n"),
        "/lib/x.service: line 2 is neither a section nor an assignment"
    );
    assert_eq!(error("[Service]\nExecStart=/a 'b\n"), "/lib/x.service: a quote ' is not closed in `/a 'b`");
    assert_eq!(
        error("[Service]\nEnvironmentFile=/nonexistent\nExecStart=/a\n"),
        "cannot read /nonexistent: No such file or directory (os error 2)"
    );
}

#[test]
fn it_is_launched_with_nothing_of_this_environment() {
    let machine =
        Machine::new(&[("lib/x.service", "[Service]\nExecStart=/bin/x\nUser=root\nEnvironment=A=1\n")]);
    let launch = machine.unit("x").unwrap().launch("hasten".into()).unwrap();
    assert!(launch.bare && launch.user.is_none());
    assert_eq!(launch.environment[&OsString::from("A")], Some("1".into()));
    assert_eq!(launch.directory.as_deref(), Some(Path::new("/")));
}
