/* Children, copies, and other programs. */
#include "common.h"
#include "device.h"
#include <sys/syscall.h>

extern char **environ;

enum { SHARE = 24, MOST = 4096 };

static SSL_CTX *server, *client;
static int results[2];

/* What a server has chosen at random in one handshake: its hello, its half of the exchange, its signature. */
struct choices {
    unsigned char random[32], share[97], signature[32];
};

static struct choices seen;

/* In TLS 1.2 all of it is in two messages that are not encrypted. */
static void look(int out, int version, int type, const void *data, size_t length, SSL *ssl, void *argument) {
    const unsigned char *message = data;
    (void)version, (void)ssl, (void)argument;
    if (out || type != SSL3_RT_HANDSHAKE || length < 38) return;
    if (message[0] == SSL3_MT_SERVER_HELLO) memcpy(seen.random, message + 6, 32);
    if (message[0] != SSL3_MT_SERVER_KEY_EXCHANGE) return;
    size_t share = message[7];
    CHECK(share <= sizeof(seen.share));
    memcpy(seen.share, message + 8, share);
    /* Algorithm, length, SEQUENCE, INTEGER r: the nonce makes r. */
    memcpy(seen.signature, message + 8 + share + 4 + 4 + 4, sizeof(seen.signature));
}

static void talk(int fd) {
    for (int i = 0; i < SHARE; i++) {
        memset(&seen, 0, sizeof(seen));
        CHECK(talk_in_memory(server, client));
        CHECK(write(fd, &seen, sizeof(seen)) == sizeof(seen));
    }
}

static bool differ(const struct choices *a, const struct choices *b) {
    return memcmp(a->random, b->random, 32) != 0 && memcmp(a->share, b->share, 32) != 0 &&
           memcmp(a->signature, b->signature, 32) != 0;
}

static pid_t begin(bool by_system_call) {
    return by_system_call ? syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
}

/* Parent and children begin with the same pools of prepared keys and nonces. */
static void random_choices(const char *key, const char *group, bool by_system_call) {
    static struct choices all[MOST];
    int count = 0, same = 0, children = 6;
    server = server_context(key);
    client = client_context(TLS1_2_VERSION);
    CHECK(SSL_CTX_set1_groups_list(client, group) == 1);
    SSL_CTX_set_msg_callback(client, look);
    CHECK(pipe(results) == 0);
    talk(results[1]);
    for (int i = 0; i < children; i++) {
        int status;
        pid_t child = begin(by_system_call);
        CHECK(child >= 0);
        if (child == 0) {
            talk(results[1]);
            pid_t grandchild = begin(by_system_call);
            talk(results[1]);
            if (grandchild > 0) CHECK(waitpid(grandchild, &status, 0) == grandchild && status == 0);
            _exit(0);
        }
        talk(results[1]);
        while (count < MOST && read(results[0], &all[count], sizeof(*all)) == sizeof(*all)) {
            count++;
            if (count == SHARE * (1 + (i + 1) * 4)) break;
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) same += !differ(&all[i], &all[j]);
    }
    printf("handshakes %d, choices made twice %d\n", count, same);
}

static int epfd, listener, port;

static void watch(int operation, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    CHECK(epoll_ctl(epfd, operation, fd, &event) == 0);
}

static bool wait_for(int fd) {
    struct epoll_event event;
    for (int i = 0; i < 50; i++) {
        if (epoll_wait(epfd, &event, 1, 5000) == 1 && event.data.fd == fd) return true;
    }
    return false;
}

static SSL *greet(int *fd) {
    CHECK(wait_for(listener));
    *fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(*fd >= 0);
    watch(EPOLL_CTL_ADD, *fd);
    SSL *ssl = SSL_new(server);
    SSL_set_accept_state(ssl);
    CHECK(SSL_set_fd(ssl, *fd) == 1);
    return ssl;
}

static int attend(SSL *ssl, int fd) {
    char data[8];
    int result;
    while ((result = SSL_do_handshake(ssl)) != 1) {
        if (SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ || !wait_for(fd)) return -1;
    }
    while ((result = SSL_read(ssl, data, 8)) <= 0) {
        if (SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ || !wait_for(fd)) return -2;
    }
    return SSL_write(ssl, "pong", 4);
}

static void ordinary(void) {
    int fd;
    pid_t visitor = send_clients(port, 1, 1, 0, true);
    SSL *ssl = greet(&fd);
    CHECK(attend(ssl, fd) == 4 && failures_of(visitor) == 0);
    SSL_free(ssl);
    close(fd);
}

/* Until the device has signed for a session that comes after those. */
static void until_it_signs(uint64_t sessions) {
    if (!has_device()) return;
    while (sessions_so_far() == sessions) ordinary();
    /* Five are questions of its start, and five may be the other process's. */
    uint64_t before = operations_so_far();
    while (operations_so_far() < before + 16) ordinary();
}

/* A fork in the middle of a handshake: one side gives it up, the other goes on. */
static void fork_inside(bool child_goes_on) {
    int fd, status;
    char byte;
    server = server_context("rsa-2048");
    listener = listen_on_loopback(&port);
    epfd = epoll_create1(EPOLL_CLOEXEC);
    watch(EPOLL_CTL_ADD, listener);
    ordinary();
    until_it_signs(0);
    for (int i = 0; i < 3; i++) {
        pid_t visitor = send_clients(port, 1, 1, 0, true);
        SSL *ssl = greet(&fd);
        while (recv(fd, &byte, 1, MSG_PEEK) < 0) usleep(100);
        CHECK(SSL_do_handshake(ssl) <= 0);
        pid_t child = fork();
        bool goes_on = (child == 0) == child_goes_on;
        if (goes_on) CHECK(attend(ssl, fd) == 4);
        SSL_free(ssl);
        close(fd);
        if (child == 0) exit(0);
        CHECK(waitpid(child, &status, 0) == child);
        printf("child %d, failed visits %d\n", status, failures_of(visitor));
    }
    /* Parent and child have an event loop each from here on. */
    uint64_t sessions = sessions_so_far();
    pid_t child = fork();
    if (child == 0) {
        close(epfd);
        close(listener);
        listener = listen_on_loopback(&port);
        epfd = epoll_create1(EPOLL_CLOEXEC);
        watch(EPOLL_CTL_ADD, listener);
        until_it_signs(sessions);
    }
    for (int i = 0; i < 5; i++) ordinary();
    if (child == 0) exit(0);
    CHECK(waitpid(child, &status, 0) == child);
    printf("child %d\n", status);
}

static bool is_preloaded(void) {
    char line[4096];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof(line), maps) != NULL) found |= strstr(line, "libhasten_tls") != NULL;
    fclose(maps);
    return found;
}

/* The second life of this program: what it got. */
static int tell(void) {
    printf("%s", is_preloaded() ? "preloaded" : "not preloaded");
    for (char **line = environ; *line != NULL; line++) {
        bool hidden = strncmp(*line, "LD_PRELOAD=", 11) == 0 || strncmp(*line, "HASTEN_TLS_", 11) == 0;
        if (!hidden) printf(" %s", *line);
    }
    puts("");
    return finish();
}

static void execute(const char *how, char *self) {
    char *arguments[] = {self, "tell", NULL}, *none[] = {NULL}, *some[] = {"A=1", "HASTEN_MINE=2", NULL};
    char *off[] = {"HASTEN_DISABLE=tls", NULL}, *own[] = {"LD_PRELOAD=", "A=1", NULL};
    char *other[] = {"/usr/bin/env", NULL};
    if (is(how, "exec-empty")) execve(self, arguments, none);
    if (is(how, "exec-some")) execve("/proc/self/exe", arguments, some);
    if (is(how, "exec-off")) execve(self, arguments, off);
    if (is(how, "exec-own")) execve(self, arguments, own);
    if (is(how, "exec-null")) execve(self, arguments, NULL); /* Linux takes it for an empty one. */
    if (is(how, "exec-other")) execve("/usr/bin/env", other, some);
    if (is(how, "exec-missing")) {
        int result = execve("/no/such/program", other, some);
        printf("missing %d %d\n", result, errno == ENOENT);
        char *volatile no_name = NULL;
        result = execve(no_name, other, none);
        printf("no name %d %d\n", result, errno == EFAULT);
        exit(finish());
    }
    CHECK(false);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    char self[4096] = {0};
    CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    signal(SIGPIPE, SIG_IGN);
    alarm(100);
    if (argc > 2) read_device(argv[2], QAT);
    if (is(what, "tell")) return tell();
    if (strncmp(what, "exec-", 5) == 0) execute(what, self);
    else if (is(what, "fork-x25519")) random_choices("p-256", "X25519:P-256", false);
    else if (is(what, "fork-p-256")) random_choices("p-256", "P-256", false);
    else if (is(what, "fork-p-384")) random_choices("p-384", "P-384", false);
    else if (is(what, "clone")) random_choices("p-256", "X25519:P-256", true);
    else if (is(what, "child-goes-on")) fork_inside(true);
    else if (is(what, "parent-goes-on")) fork_inside(false);
    else CHECK(false);
    return finish();
}
