use hasten_probe::host::kernel::{IoUring, Kernel, KernelTls};

use super::{Finding, Group, State, size};

pub(super) fn findings(kernel: &Kernel) -> Vec<Finding> {
    let all = vec![
        release(kernel),
        memfd(kernel),
        epoll_pwait2(kernel),
        io_uring(kernel),
        ktls(kernel),
        perf(kernel),
        userns(kernel),
        cpu_limit(kernel),
        memory_limit(kernel),
    ];
    // Without /proc nothing is known, and a missing file says nothing about the kernel.
    if kernel.release.is_empty() { all.into_iter().map(Finding::unknown).collect() } else { all }
}

fn finding(id: &str, feature: &str, why: &'static str) -> Finding {
    Finding::new(Group::Kernel, format!("kernel.{id}"), feature, why)
}

fn release(kernel: &Kernel) -> Finding {
    let finding = finding("release", "kernel", "decides which of the following there can be");
    match kernel.release.as_str() {
        "" => finding,
        release => finding.state(State::Available, release),
    }
}

fn memfd(kernel: &Kernel) -> Finding {
    finding("memfd", "memfd", "the counter page that `hasten top` reads")
        .known(kernel.memfd, "use Linux 3.17 or later")
}

fn epoll_pwait2(kernel: &Kernel) -> Finding {
    finding("epoll_pwait2", "epoll_pwait2", "event waits with nanosecond timeouts")
        .known(kernel.epoll_pwait2, "use Linux 5.11 or later")
}

fn io_uring(kernel: &Kernel) -> Finding {
    let finding =
        finding("io_uring", "io_uring", "batches system calls; servers that use it do not wait in epoll");
    let fix = "sysctl kernel.io_uring_disabled=0";
    match kernel.io_uring {
        IoUring::Enabled => finding.state(State::Available, "yes"),
        IoUring::Restricted => finding.state(State::Limited, "privileged processes only").fix(fix),
        IoUring::Disabled => finding.state(State::Absent, "switched off").fix(fix),
        IoUring::Absent => finding.state(State::Absent, "not in this kernel"),
        IoUring::Unknown => finding,
    }
}

fn ktls(kernel: &Kernel) -> Finding {
    let finding =
        finding("ktls", "kernel TLS", "encrypts records in the kernel, so that sendfile works with TLS");
    match kernel.ktls {
        KernelTls::Loaded => finding.state(State::Available, "loaded"),
        KernelTls::Available => finding.state(State::Limited, "module not loaded").fix("modprobe tls"),
        KernelTls::Absent => finding.state(State::Absent, "not in this kernel"),
        KernelTls::Unknown => {
            finding.state(State::Unknown, "not loaded; its module is not visible here").fix("modprobe tls")
        }
    }
}

fn perf(kernel: &Kernel) -> Finding {
    let finding =
        finding("perf_events", "perf events", "shows where CPU time goes, for users without CAP_PERFMON");
    let Some(level) = kernel.perf_event_paranoid else {
        return finding.state(State::Absent, "not in this kernel");
    };
    let detail = format!("perf_event_paranoid = {level}");
    match level {
        ..=1 => finding.state(State::Available, detail),
        2 => finding
            .state(State::Limited, format!("{detail}: own programs, without the kernel's part"))
            .fix("sysctl kernel.perf_event_paranoid=1"),
        _ => finding.state(State::Absent, detail).fix("sysctl kernel.perf_event_paranoid=1"),
    }
}

fn userns(kernel: &Kernel) -> Finding {
    finding("userns", "user namespaces", "sandboxes without root, for tests").known(
        kernel.unprivileged_userns,
        "sysctl kernel.unprivileged_userns_clone=1 (or user.max_user_namespaces=10000)",
    )
}

fn cpu_limit(kernel: &Kernel) -> Finding {
    let finding =
        finding("cpu_limit", "CPU limit", "a throttled group stalls, which looks like a slow server");
    match kernel.cgroup.cpu_limit {
        None => finding.state(State::Available, "no limit"),
        Some(cpus) => finding.state(State::Limited, format!("{cpus:.2} CPUs")),
    }
}

fn memory_limit(kernel: &Kernel) -> Finding {
    let finding = finding("memory_limit", "memory limit", "the group is killed or swaps beyond it");
    match kernel.cgroup.memory_limit_bytes {
        None => finding.state(State::Available, "no limit"),
        Some(bytes) => finding.state(State::Limited, size(bytes)),
    }
}
