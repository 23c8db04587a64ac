//! What `hasten core` tells beside stack and sizes: exceptions, the heap by space, what was open, and who waited for what.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[path = "support/cores.rs"]
mod cores;

use cores::{core_of, hasten, here, node};

const ABORTED: i32 = 6;
const TRAPPED: i32 = 5;
const CRASHED: i32 = 11;

/// One release, and all of them in `make thorough`: each differs in the layout of something.
fn releases() -> Vec<&'static str> {
    match std::env::var_os("HASTEN_TEST_THOROUGH") {
        Some(_) => here(&["18", "20", "22", "24", "26"]),
        None => here(&["24"]),
    }
}

/// Something of every kind that is open or waits, and then an error that nobody catches.
const PROGRAM: &str = "
const net = require('net');
class Boom extends Error {}
const never = new Promise(() => {});
async function deepest() {
  await never;
}
async function middle() {
  return 1 + await deepest();
}
async function outermost() { await middle(); }
for (let i = 0; i < 7; i++) outermost();
async function several() { await Promise.all([deepest(), 2]); }
several();
async function* numbers() { yield 1; await never; }
const iterator = numbers();
iterator.next().then(() => iterator.next());
never.then(function afterwards() {});
globalThis.rejected = Promise.reject(new Error('looked at'));
rejected.catch(() => {});
function onTick() {}
setInterval(onTick, 12345);
for (let i = 0; i < 3; i++) setTimeout(function later() {}, 60000);
setTimeout(function unwanted() {}, 70000).unref();
const server = net.createServer(() => {});
server.listen(0, '127.0.0.1', () => {
  setTimeout(function explode() {
    throw new Boom('the pot boils over');
  }, 50);
});
";

fn report(core: &Path) -> Value {
    serde_json::from_slice(&hasten(&[core.as_ref(), "--json".as_ref()])).unwrap()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name} in {value}"))
}

fn check_spaces(report: &Value, release: &str) {
    let [isolate] = list(report, "isolates") else { panic!("{release}: one isolate") };
    assert_eq!(isolate["limit_bytes"], 200 << 20, "{release}");
    assert_eq!(isolate["semi_space_limit_bytes"], 8 << 20, "{release}");
    let spaces = list(isolate, "spaces");
    let bytes = |space: &Value, name: &str| space[name].as_u64().unwrap();
    for space in spaces {
        let [size, used, live] = ["size_bytes", "used_bytes", "live_bytes"].map(|name| bytes(space, name));
        assert!(live <= used && used <= size, "{release}: {space}");
    }
    let live: u64 = spaces.iter().map(|space| bytes(space, "live_bytes")).sum();
    assert_eq!(live, report["heap"]["live_bytes"], "{release}");
    for name in ["read-only", "new", "old"] {
        assert!(spaces.iter().any(|space| space["name"] == name), "{release}: {name} in {spaces:?}");
    }
    assert!(spaces.iter().all(|space| space["name"] != "(unknown)"), "{release}: {spaces:?}");
}

fn check_exception(report: &Value, release: &str) {
    let thrown = list(report, "thrown");
    let boom = thrown
        .iter()
        .find(|thrown| thrown["name"] == "Boom")
        .unwrap_or_else(|| panic!("{release}: {thrown:?}"));
    assert_eq!(boom["message"], "the pot boils over", "{release}");
    let first = list(boom, "stack")[0].as_str().unwrap();
    assert!(first.contains("explode") && first.contains("app.js:28:11"), "{release}: {first}");
    let text = String::from_utf8(hasten(&[report["file"].as_str().unwrap().as_ref()])).unwrap();
    assert!(text.contains("Boom: the pot boils over"), "{release}: {text}");
}

fn check_promises(report: &Value, release: &str) {
    let promises = &report["promises"];
    let stacks: Vec<(u64, Vec<String>)> = list(promises, "stacks")
        .iter()
        .map(|stack| {
            let frame = |frame: &Value| {
                format!("{} {}:{}", frame["function"].as_str().unwrap(), frame["line"], frame["column"])
            };
            (stack["count"].as_u64().unwrap(), list(stack, "frames").iter().map(frame).collect())
        })
        .collect();
    let expected = ["deepest 6:3", "middle 9:14", "outermost 11:30"].map(str::to_owned).to_vec();
    assert!(stacks.contains(&(7, expected)), "{release}: {stacks:?}");
    let combined = |frames: &[String]| {
        frames.iter().any(|frame| frame.starts_with("Promise.all"))
            && frames.iter().any(|frame| frame.starts_with("several 13:"))
    };
    assert!(stacks.iter().any(|(_, frames)| combined(frames)), "{release}: {stacks:?}");
    assert!(stacks.iter().any(|(_, frames)| frames[0].starts_with("numbers 15:")), "{release}: {stacks:?}");
    // Seven times three, two of `several`, and the generator.
    assert_eq!(promises["suspended"], 24, "{release}");
    assert!(
        promises["pending"].as_u64() > Some(24) && promises["reactions"].as_u64() > Some(24),
        "{release}: {promises}"
    );
    assert_eq!(
        (&promises["rejected"], &promises["unhandled"]),
        (&1.into(), &0.into()),
        "{release}: {promises}"
    );
}

fn check_loop(report: &Value, release: &str) {
    let [event_loop] = list(report, "loops") else { panic!("{release}: {}", report["loops"]) };
    assert_eq!(event_loop["thread"], "main", "{release}");
    let handles = list(event_loop, "handles");
    let server = handles
        .iter()
        .find(|handle| handle["kind"] == "tcp")
        .unwrap_or_else(|| panic!("{release}: {handles:?}"));
    assert!(server["fd"].as_i64() > Some(2) && server["referenced"] == true, "{release}: {server}");
    let about = server["about"].as_str().unwrap();
    assert!(
        about.starts_with("Server @") && about.ends_with("listening at 127.0.0.1:0"),
        "{release}: {about}"
    );
    let timers = list(&report["timers"], "groups");
    let of = |name: &str| {
        timers
            .iter()
            .find(|timer| timer["function"] == name)
            .unwrap_or_else(|| panic!("{release}: {timers:?}"))
    };
    assert_eq!(
        (&of("onTick")["after_ms"], &of("onTick")["repeats"]),
        (&12345.into(), &true.into()),
        "{release}"
    );
    assert_eq!((&of("later")["count"], &of("later")["line"]), (&3.into(), &23.into()), "{release}");
    assert_eq!(
        (&of("later")["referenced"], &of("unwanted")["referenced"]),
        (&true.into(), &false.into()),
        "{release}"
    );
}

#[test]
fn what_was_open_thrown_and_waited_for_is_told() {
    for release in releases() {
        let folder = tempfile::tempdir().unwrap();
        let options =
            ["--abort-on-uncaught-exception", "--max-old-space-size=200", "--max-semi-space-size=8"];
        let Some(core) = core_of(release, &options, PROGRAM, TRAPPED, folder.path()) else { return };
        let report = report(&core);
        assert!(report["v8"].as_str().unwrap().contains("-node."), "{release}: {}", report["v8"]);
        check_exception(&report, release);
        check_spaces(&report, release);
        check_promises(&report, release);
        check_loop(&report, release);
    }
}

/// Writes where nothing is.
const ADDON: &str = "
#include <node_api.h>
__attribute__((noipa)) int crash_here(volatile int *where) { *where = 1; return *where; }
static napi_value crash(napi_env env, napi_callback_info info) {
  (void) env, (void) info;
  if (crash_here((int *) 16)) return 0;
  return 0;
}
static napi_value begin(napi_env env, napi_value exports) {
  napi_value function;
  napi_create_function(env, 0, 0, crash, 0, &function);
  napi_set_named_property(env, exports, \"crash\", function);
  return exports;
}
NAPI_MODULE(crasher, begin)
";

const CALLS_ADDON: &str = "
const { crash } = require('./crasher.node');
function caller(text) {
  crash(text);
}
caller('an argument');
";

#[test]
fn a_crash_in_an_addon_is_told_with_its_library_and_symbol() {
    for release in releases() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("crasher.c"), ADDON).unwrap();
        let include = node(release).parent().unwrap().join("../include/node");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-shared", "-fPIC", "-o", "crasher.node", "crasher.c", "-I"]).arg(include);
        assert!(compiler.current_dir(folder.path()).status().unwrap().success());
        let Some(core) = core_of(release, &[], CALLS_ADDON, CRASHED, folder.path()) else { return };
        let report = report(&core);
        let frames = list(&report["threads"][0], "frames");
        let at = |name: &str| {
            let found = frames.iter().position(|frame| frame["function"] == name);
            found.unwrap_or_else(|| panic!("{release}: {name} in {frames:?}"))
        };
        assert_eq!((at("crash_here"), &frames[0]["script"]), (0, &"crasher.node".into()), "{release}");
        assert_eq!(frames[0]["kind"], "native");
        assert!(at("crash_here") < at("crash") && at("crash") < at("caller"), "{release}: {frames:?}");
        assert!(at("caller") < at("node::Start"), "{release}: {frames:?}");
    }
}

/// Calls what throws, without a handler and with one, and throws itself; then it ends the process.
const HOLDER: &str = "
#include <cstdlib>
#include <node.h>
using namespace v8;
static void Call(const FunctionCallbackInfo<Value>& info) {
  Local<Context> context = info.GetIsolate()->GetCurrentContext();
  Local<Value> result;
  bool is_done = info[0].As<Function>()->Call(context, Undefined(info.GetIsolate()), 0, nullptr).ToLocal(&result);
  if (!is_done) abort();
}
static void Hold(const FunctionCallbackInfo<Value>& info) {
  TryCatch handler(info.GetIsolate());
  Call(info);
}
static void Raise(const FunctionCallbackInfo<Value>& info) {
  info.GetIsolate()->ThrowException(info[0]);
  abort();
}
NODE_MODULE_INIT() {
  NODE_SET_METHOD(exports, \"call\", Call);
  NODE_SET_METHOD(exports, \"hold\", Hold);
  NODE_SET_METHOD(exports, \"raise\", Raise);
}
";

const THROWS: &str = "
const holder = require('./holder.node');
class Odd extends Error {}
function thrower() { throw new Odd('three are left'); }
holder.HOW('HOW' === 'raise' ? new Odd('three are left') : thrower);
";

#[test]
fn an_exception_that_native_code_has_in_hand_is_told_with_who_has_it() {
    for release in releases() {
        let made = tempfile::tempdir().unwrap();
        fs::write(made.path().join("holder.cc"), HOLDER).unwrap();
        let include = node(release).parent().unwrap().join("../include/node");
        let mut compiler = Command::new("c++");
        compiler.args(["-std=c++20", "-w", "-shared", "-fPIC", "-o", "holder.node", "holder.cc", "-I"]);
        assert!(compiler.arg(include).current_dir(made.path()).status().unwrap().success());
        let since_22 = !["18", "20"].contains(&release);
        for (how, holds) in [("call", false), ("raise", false), ("hold", true)] {
            let folder = tempfile::tempdir().unwrap();
            fs::copy(made.path().join("holder.node"), folder.path().join("holder.node")).unwrap();
            let program = THROWS.replace("HOW", how);
            let Some(core) = core_of(release, &[], &program, ABORTED, folder.path()) else { return };
            let report = report(&core);
            let [thrown] = list(&report, "thrown") else { panic!("{release} {how}: {}", report["thrown"]) };
            assert_eq!((&thrown["name"], &thrown["message"]), (&"Odd".into(), &"three are left".into()));
            let told = thrown["how"].as_str().unwrap();
            assert_eq!(told.contains("held by native code"), holds, "{release} {how}: {told}");
            assert_eq!(told.contains("pending"), !holds || since_22, "{release} {how}: {told}");
            let first = list(thrown, "stack")[0].as_str().unwrap();
            let expected = if how == "raise" { "app.js:5:36" } else { "app.js:4:28" };
            assert!(first.contains(expected), "{release} {how}: {first}");
        }
    }
}

/// A worker has a heap and a loop of its own, and an error may be known only to the function that was told of it.
const WITH_WORKER: &str = "
const { Worker } = require('worker_threads');
const worker = new Worker(\"setInterval(() => {}, 1e6); require('worker_threads').parentPort.postMessage(1)\", { eval: true });
process.on('uncaughtException', function told(error) { process.abort(); });
worker.on('message', () => { throw new TypeError('told to a handler'); });
";

#[test]
fn workers_and_errors_that_handlers_were_told_of_are_found() {
    for release in releases() {
        let folder = tempfile::tempdir().unwrap();
        let Some(core) = core_of(release, &[], WITH_WORKER, ABORTED, folder.path()) else { return };
        let report = report(&core);
        assert_eq!(list(&report, "isolates").len(), 2, "{release}");
        let loops = list(&report, "loops");
        assert_eq!(loops.len(), 2, "{release}: {loops:?}");
        assert!(loops.iter().any(|one| one["thread"] != "main"), "{release}: {loops:?}");
        let thrown = list(&report, "thrown");
        let told = thrown.iter().find(|thrown| thrown["message"] == "told to a handler");
        assert_eq!(told.unwrap_or_else(|| panic!("{release}: {thrown:?}"))["name"], "TypeError");
        let redacted = hasten(&[core.as_ref(), "--json".as_ref(), "--redact".as_ref()]);
        assert!(!String::from_utf8(redacted).unwrap().contains("told to a handler"), "{release}");
    }
}

/// A quarter of the heap and more, to which an array of the program and one on the stack lead.
const SHARED: &str = "
class Entry { constructor(i) { this.text = 'entry ' + i; this.more = [i, i]; } }
globalThis.entries = Array.from({ length: 50000 }, (_, i) => new Entry(i));
function end() {
  const copy = entries.slice();
  process.abort();
  return copy.length;
}
end();
";

#[test]
fn what_two_arrays_hold_is_suspected() {
    for release in releases() {
        let folder = tempfile::tempdir().unwrap();
        let Some(core) = core_of(release, &[], SHARED, ABORTED, folder.path()) else { return };
        let report = report(&core);
        let suspects = list(&report, "suspects");
        let entry = suspects.iter().find(|suspect| suspect["name"] == "Entry");
        let entry = entry.unwrap_or_else(|| panic!("{release}: {suspects:?}"));
        assert_eq!(
            (&entry["count"], list(entry, "held_by").len()),
            (&50_000.into(), 0),
            "{release}: {entry}"
        );
        let text = String::from_utf8(hasten(&[core.as_ref()])).unwrap();
        assert!(text.contains("several objects lead to each of 100 % of all"), "{release}: {text}");
    }
}

/// The core file without the page of V8's heap that has an object: nothing there begins one.
fn without_page_of(core: &Path, object: u64) -> Vec<u8> {
    const PAGE: u64 = 256 << 10;
    let mut bytes = fs::read(core).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let count = usize::from(u16::from_le_bytes(bytes[56..58].try_into().unwrap()));
    let page = object & !(PAGE - 1);
    let at = (0..count).map(|index| word(32) as usize + 56 * index).find_map(|header| {
        // Its place in the file, its address, and its length there.
        let [offset, start, length] = [8, 16, 32].map(|field| word(header + field));
        (start..start + length).contains(&page).then(|| (offset + page - start) as usize)
    });
    bytes[at.unwrap()..][..16].fill(0);
    bytes
}

#[test]
fn a_page_that_the_file_lacks_is_missed() {
    for release in releases() {
        let folder = tempfile::tempdir().unwrap();
        let Some(core) = core_of(release, &[], SHARED, ABORTED, folder.path()) else { return };
        let whole = report(&core);
        assert_eq!(whole["missing_pages"], 0, "{release}");
        let example = list(&whole, "suspects")[0]["example"].as_str().unwrap();
        let damaged = folder.path().join("damaged");
        fs::write(&damaged, without_page_of(&core, u64::from_str_radix(example, 16).unwrap())).unwrap();
        let report = report(&damaged);
        assert_eq!(report["missing_pages"], 1, "{release}");
        let refused = report["refused"].as_str().unwrap_or_default();
        assert!(refused.starts_with("the file lacks 1 page of V8's heap"), "{release}: {refused}");
    }
}
