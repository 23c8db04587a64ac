/*
 * A server that forbids itself what it does not need: a system call that is not its own ends it.
 *
 * "late" has served a client before, "early" has not.
 */
#include "serve.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* What a server of this kind does not need once it runs, and a library might like to use. */
static const int forbidden[] = {
    SYS_getsockopt, SYS_memfd_create, SYS_prlimit64, SYS_gettid, SYS_tgkill, SYS_readlink, SYS_readlinkat,
    SYS_getdents64, SYS_sched_getaffinity, SYS_uname, SYS_statfs, SYS_socket, SYS_fork, SYS_vfork, SYS_execve, SYS_ftruncate,
};

static void forbid(bool by_system_call) {
    enum { COUNT = sizeof(forbidden) / sizeof(*forbidden) };
    struct sock_filter filter[2 * COUNT + 2];
    struct sock_fprog program = {.len = 2 * COUNT + 2, .filter = filter};
    int at = 0;
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < COUNT; i++) {
        filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, forbidden[i], 0, 1);
        filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (by_system_call) CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
    else CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int served = 0;
    open_server("p-256");
    pid_t visitors = send_clients(port, 1, 12, 0, false);
    for (int i = 0; i < 6 && !is(what, "early"); i++) served += serve(NULL);
    forbid(is(what, "system-call"));
    while (served < 12) {
        if (!serve(NULL)) break;
        served++;
    }
    printf("served %d, failed visits %d\n", served, failures_of(visitors));
    return finish();
}
