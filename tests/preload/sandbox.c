/*
 * A server that forbids itself what it does not need: a system call that is not its own ends it.
 *
 * "late" has served a client before, "early" has not.
 */
#include "common.h"
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

static SSL_CTX *server;
static int epfd, listener, port;

static void watch(int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    CHECK(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) == 0);
}

static void wait_for(int fd) {
    struct epoll_event event;
    for (int i = 0; i < 1000; i++) {
        if (epoll_wait(epfd, &event, 1, 20000) == 1 && event.data.fd == fd) return;
    }
    CHECK(false);
}

static bool serve(void) {
    char data[8];
    int result;
    wait_for(listener);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(fd >= 0);
    watch(fd);
    SSL *ssl = SSL_new(server);
    SSL_set_accept_state(ssl);
    CHECK(SSL_set_fd(ssl, fd) == 1);
    while ((result = SSL_do_handshake(ssl)) != 1) {
        if (SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ) return false;
        wait_for(fd);
    }
    while ((result = SSL_read(ssl, data, 8)) <= 0) {
        if (SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ) return false;
        wait_for(fd);
    }
    bool good = SSL_write(ssl, "pong", 4) == 4;
    SSL_free(ssl);
    close(fd);
    return good;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int served = 0;
    signal(SIGPIPE, SIG_IGN);
    alarm(100);
    server = server_context("p-256");
    listener = listen_on_loopback(&port);
    epfd = epoll_create1(EPOLL_CLOEXEC);
    watch(listener);
    pid_t visitors = send_clients(port, 1, 12, 0, false);
    for (int i = 0; i < 6 && !is(what, "early"); i++) served += serve();
    forbid(is(what, "system-call"));
    while (served < 12) {
        if (!serve()) break;
        served++;
    }
    printf("served %d, failed visits %d\n", served, failures_of(visitors));
    return finish();
}
