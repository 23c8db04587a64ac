/*
 * What a server may do with a connection in the middle of its handshake.
 *
 * `interrupt` brings a connection to where its first call into libssl has
 * read the ClientHello: accelerated, the handshake is then suspended; stock,
 * it waits for the client. The server cannot tell the difference, and
 * whatever it does next must have the same outcome.
 */
#include "common.h"
#include <sys/resource.h>
#include <sys/uio.h>

static SSL_CTX *context;
static int epfd, listener, port;
static char silent[] = "silent";

struct peer {
    SSL *ssl;
    int fd;
    pid_t client;
};

static void watch(int operation, int fd, uint32_t events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    CHECK(epoll_ctl(epfd, operation, fd, &event) == 0);
}

/* Waits until `fd` is reported. Others that are ready stay so, whatever they are ready for: they get a pause. */
static uint32_t wait_for(int fd, int timeout) {
    struct epoll_event events[8];
    for (int waited = 0; waited < 10000; waited++) {
        int count = epoll_wait(epfd, events, 8, timeout);
        if (count == 0) return 0;
        CHECK(count > 0 || errno == EINTR);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == fd) return events[i].events;
        }
        usleep(1000);
    }
    return 0;
}

static struct peer greet(pid_t client, bool registered) {
    struct peer peer = {.client = client};
    wait_for(listener, 10000);
    peer.fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(peer.fd >= 0);
    if (registered) watch(EPOLL_CTL_ADD, peer.fd, EPOLLIN);
    peer.ssl = SSL_new(context);
    SSL_set_accept_state(peer.ssl);
    CHECK(SSL_set_fd(peer.ssl, peer.fd) == 1);
    return peer;
}

static bool waits(SSL *ssl, int result) {
    int error = SSL_get_error(ssl, result);
    return result <= 0 && (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE);
}

/* Goes on until the visit is over; what the server got, or -1. */
static int attend(struct peer *peer) {
    char data[16];
    int result;
    while ((result = SSL_do_handshake(peer->ssl)) != 1) {
        if (!waits(peer->ssl, result)) return -1;
        if (wait_for(peer->fd, 10000) == 0) return -2;
    }
    while ((result = SSL_read(peer->ssl, data, sizeof(data))) <= 0) {
        if (!waits(peer->ssl, result)) return -3;
        if (wait_for(peer->fd, 10000) == 0) return -4;
    }
    return SSL_write(peer->ssl, "pong", 4) == 4 ? result : -5;
}

/* Frees the server's side; how many of the client's visits failed. */
static int part(struct peer *peer) {
    SSL_free(peer->ssl);
    close(peer->fd);
    return failures_of(peer->client);
}

/* A whole visit in the ordinary way. */
static void ordinary(void) {
    struct peer peer = greet(send_clients(port, 1, 1, 0, true), true);
    CHECK(attend(&peer) == 4);
    CHECK(part(&peer) == 0);
}

static void await_hello(const struct peer *peer) {
    char byte;
    while (recv(peer->fd, &byte, 1, MSG_PEEK) < 0) usleep(100);
}

/* Calls into libssl once, when the ClientHello is there. */
static void interrupt(struct peer *peer) {
    await_hello(peer);
    int result = SSL_do_handshake(peer->ssl);
    CHECK(waits(peer->ssl, result) && ERR_peek_error() == 0);
}

static struct peer interrupted(void) {
    struct peer peer = greet(send_clients(port, 1, 1, 0, true), true);
    interrupt(&peer);
    return peer;
}

static void report(const char *what, int value) { printf("%s: %d\n", what, value); }

/* A server that shook hands once and leaves the rest to the functions that transfer data. */
static void transfer(const char *function) {
    struct peer peer = interrupted();
    char data[16];
    size_t done = 0;
    int result = 0;
    for (int i = 0; i < 50 && result <= 0; i++) {
        if (is(function, "read")) result = SSL_read(peer.ssl, data, sizeof(data));
        if (is(function, "peek")) result = SSL_peek(peer.ssl, data, sizeof(data));
        if (is(function, "write")) result = SSL_write(peer.ssl, "pong", 4);
        if (is(function, "read-ex")) result = SSL_read_ex(peer.ssl, data, sizeof(data), &done);
        if (is(function, "peek-ex")) result = SSL_peek_ex(peer.ssl, data, sizeof(data), &done);
        if (is(function, "write-ex")) result = SSL_write_ex(peer.ssl, "pong", 4, &done);
        if (result <= 0) {
            CHECK(waits(peer.ssl, result));
            CHECK(wait_for(peer.fd, 10000) != 0);
        }
    }
    report("result", result);
    report("done", done);
    if (strstr(function, "read") != NULL) report("answered", SSL_write(peer.ssl, "pong", 4));
    if (strstr(function, "peek") != NULL) report("the rest", attend(&peer));
    report("failed visits", part(&peer));
}

static void shutdown_inside(void) {
    struct peer peer = interrupted();
    int result = SSL_shutdown(peer.ssl);
    report("result", result);
    report("error", SSL_get_error(peer.ssl, result));
    report("reason", ERR_GET_REASON(ERR_get_error()));
    ERR_clear_error();
    report("the rest", attend(&peer));
    report("failed visits", part(&peer));
}

static void stale_errors(void) {
    struct peer peer = interrupted();
    char data[16];
    ERR_raise(ERR_LIB_SYS, EINVAL);
    int result = SSL_do_handshake(peer.ssl);
    report("error of a handshake", SSL_get_error(peer.ssl, result));
    ERR_raise(ERR_LIB_SYS, EINVAL);
    result = SSL_read(peer.ssl, data, sizeof(data));
    report("error of a read", SSL_get_error(peer.ssl, result));
    report("error of nothing", SSL_get_error(peer.ssl, 1));
    report("want", SSL_want(peer.ssl));
    report("the rest", attend(&peer));
    report("failed visits", part(&peer));
}

static void free_inside(int times) {
    int failures = 0;
    for (int i = 0; i < times; i++) {
        struct peer peer = interrupted();
        ERR_raise(ERR_LIB_SYS, EINVAL);
        SSL_free(peer.ssl);
        CHECK(ERR_GET_REASON(ERR_get_error()) == EINVAL && ERR_get_error() == 0);
        close(peer.fd);
        failures += failures_of(peer.client);
    }
    report("failed visits", failures);
}

static bool is_gone;
static int calls_when_gone;

static void informed(const SSL *ssl, int kind, int value) {
    (void)ssl, (void)kind, (void)value;
    calls_when_gone += is_gone;
}

static void messaged(int out, int version, int type, const void *data, size_t length, SSL *ssl, void *argument) {
    (void)out, (void)version, (void)type, (void)data, (void)length, (void)ssl, (void)argument;
    calls_when_gone += is_gone;
}

static void forgotten(SSL_CTX *ctx, SSL_SESSION *session) {
    (void)ctx, (void)session;
    calls_when_gone += is_gone;
}

/* SSL_free calls nobody: what callbacks refer to may be gone. */
static void callbacks(bool own) {
    if (!own) SSL_CTX_set_info_callback(context, informed);
    SSL_CTX_set_msg_callback(context, messaged);
    SSL_CTX_sess_set_remove_cb(context, forgotten);
    struct peer peer = greet(send_clients(port, 1, 1, 0, true), true);
    if (own) SSL_set_info_callback(peer.ssl, informed);
    interrupt(&peer);
    is_gone = true;
    part(&peer);
    report("calls when gone", calls_when_gone);
    is_gone = false;
    peer = interrupted();
    report("the rest", attend(&peer));
    report("own callback", own && SSL_get_info_callback(peer.ssl) != NULL);
    report("failed visits", part(&peer));
}

static void clear_inside(void) {
    struct peer peer = greet(send_clients(port, 1, 1, 0, true), true), other;
    BIO *read_bio = SSL_get_rbio(peer.ssl), *write_bio = SSL_get_wbio(peer.ssl);
    interrupt(&peer);
    report("cleared", SSL_clear(peer.ssl));
    report("same BIOs", read_bio == SSL_get_rbio(peer.ssl) && write_bio == SSL_get_wbio(peer.ssl));
    report("before", SSL_in_before(peer.ssl));
    close(peer.fd);
    report("failed visits", failures_of(peer.client));
    /* The same SSL for another connection. */
    other = greet(send_clients(port, 1, 1, 0, true), true);
    SSL_free(other.ssl);
    other.ssl = peer.ssl;
    SSL_set_accept_state(other.ssl);
    CHECK(SSL_set_fd(other.ssl, other.fd) == 1);
    report("the rest", attend(&other));
    report("failed visits", part(&other));
}

/* Cleared, and then the same connection again: nothing of the first attempt may be sent. */
static void clear_and_repeat(void) {
    struct peer peer = interrupted();
    char data[4096];
    int result;
    CHECK(SSL_clear(peer.ssl) == 1);
    SSL_set_accept_state(peer.ssl);
    result = SSL_do_handshake(peer.ssl);
    report("waits", waits(peer.ssl, result));
    kill(peer.client, SIGKILL);
    CHECK(waitpid(peer.client, NULL, 0) == peer.client);
    while (wait_for(peer.fd, 10000) != 0 && (result = SSL_do_handshake(peer.ssl), waits(peer.ssl, result))) {
    }
    report("ends", SSL_get_error(peer.ssl, result) != SSL_ERROR_NONE);
    report("left", recv(peer.fd, data, sizeof(data), 0) <= 0);
    SSL_free(peer.ssl);
    close(peer.fd);
}

static void references(const char *when) {
    struct peer peer = greet(send_clients(port, 1, 1, 0, true), true);
    SSL *copy = peer.ssl;
    if (is(when, "shared-before")) CHECK(SSL_up_ref(peer.ssl) == 1);
    interrupt(&peer);
    if (is(when, "shared-inside")) CHECK(SSL_up_ref(peer.ssl) == 1);
    if (is(when, "duplicated")) copy = SSL_dup(peer.ssl);
    report("the same", copy == peer.ssl);
    SSL_free(copy);
    report("the rest", attend(&peer));
    report("failed visits", part(&peer));
}

static void *use_elsewhere(void *argument) {
    struct peer *peer = argument;
    char data[16];
    for (int i = 0; i < 10; i++) {
        SSL_do_handshake(peer->ssl);
        SSL_read(peer->ssl, data, 0);
    }
    return NULL;
}

static void *free_elsewhere(void *argument) {
    struct peer *peer = argument;
    SSL_clear(peer->ssl);
    SSL_free(peer->ssl);
    return NULL;
}

/* Another thread takes part; this one goes on as if it had not. */
static void other_threads(void) {
    pthread_t thread;
    struct peer peer = interrupted(), doomed = interrupted();
    CHECK(pthread_create(&thread, NULL, use_elsewhere, &peer) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, free_elsewhere, &doomed) == 0 && pthread_join(thread, NULL) == 0);
    close(doomed.fd);
    report("doomed visits", failures_of(doomed.client));
    report("the rest", attend(&peer));
    report("failed visits", part(&peer));
}

static void *leave_suspended(void *argument) {
    struct peer *peer = argument;
    struct epoll_event event;
    /* Not the one that another thread waits on. */
    close(epfd);
    epfd = epoll_create1(EPOLL_CLOEXEC);
    watch(EPOLL_CTL_ADD, listener, EPOLLIN);
    ordinary();
    *peer = interrupted();
    epoll_wait(epfd, &event, 1, 0);
    return NULL;
}

/* A thread ends and leaves a connection to another. */
static void thread_ends(void) {
    struct peer peer;
    pthread_t thread;
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_create(&thread, NULL, leave_suspended, &peer) == 0 && pthread_join(thread, NULL) == 0);
        SSL_free(peer.ssl);
        close(peer.fd);
        report("failed visits", failures_of(peer.client));
    }
}

/* The number of a closed connection goes to the next one, whose SSL_free comes first or last or never. */
static void reused_number(void) {
    struct peer first = interrupted(), second;
    int number = first.fd;
    close(first.fd);
    second = greet(send_clients(port, 1, 1, 0, true), true);
    report("same number", second.fd == number);
    report("the rest", attend(&second));
    report("failed visits", part(&second));
    SSL_free(first.ssl);
    report("failed visits", failures_of(first.client));

    first = interrupted();
    close(first.fd);
    second = greet(send_clients(port, 1, 1, 0, true), true);
    interrupt(&second);
    report("the rest", attend(&second));
    report("failed visits", part(&second));
    report("failed visits", failures_of(first.client));
    wait_for(listener, 50);
}

static void duplicated_number(void) {
    struct peer peer = greet(send_clients(port, 1, 1, 0, true), false);
    int copy = dup(peer.fd);
    watch(EPOLL_CTL_ADD, copy, EPOLLIN);
    CHECK(SSL_set_fd(peer.ssl, copy) == 1);
    close(peer.fd);
    peer.fd = copy;
    interrupt(&peer);
    report("the rest", attend(&peer));
    report("failed visits", part(&peer));
}

/* dup2 closes what its target was, and the target is no connection then. */
static void replaced_number(void) {
    struct peer peer = interrupted();
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    CHECK(dup2(pipes[0], peer.fd) == peer.fd);
    watch(EPOLL_CTL_ADD, peer.fd, EPOLLIN);
    report("reported", wait_for(peer.fd, 50) != 0);
    CHECK(write(pipes[1], "x", 1) == 1);
    report("reported", wait_for(peer.fd, 5000) != 0);
    SSL_free(peer.ssl);
    report("failed visits", failures_of(peer.client));
    close(pipes[0]);
    close(pipes[1]);
    close(peer.fd);
}

static void reregistered(void) {
    struct peer peer = interrupted();
    watch(EPOLL_CTL_DEL, peer.fd, 0);
    wait_for(listener, 20);
    wait_for(listener, 20);
    watch(EPOLL_CTL_ADD, peer.fd, EPOLLIN | EPOLLET);
    report("the rest", attend(&peer));
    report("failed visits", part(&peer));

    peer = interrupted();
    watch(EPOLL_CTL_MOD, peer.fd, 0);
    wait_for(listener, 20);
    watch(EPOLL_CTL_MOD, peer.fd, EPOLLIN);
    report("the rest", attend(&peer));
    report("failed visits", part(&peer));

    peer = interrupted();
    int other = epoll_create1(EPOLL_CLOEXEC), first = epfd;
    watch(EPOLL_CTL_DEL, peer.fd, 0);
    epfd = other;
    watch(EPOLL_CTL_ADD, peer.fd, EPOLLIN);
    report("the rest", attend(&peer));
    report("failed visits", part(&peer));
    close(other);
    epfd = first;
}

/* epoll_ctl does not look at the event when it deletes, and refuses what it cannot read. */
static void odd_calls(void) {
    struct peer peer = greet(send_clients(port, 1, 1, 0, true), true);
    struct epoll_event *volatile nowhere = (struct epoll_event *)1;
    report("deleted", epoll_ctl(epfd, EPOLL_CTL_DEL, peer.fd, nowhere));
    report("refused", epoll_ctl(epfd, EPOLL_CTL_ADD, peer.fd, nowhere));
    report("because", errno == EFAULT);
    report("no room", epoll_wait(epfd, nowhere, 0, 0));
    report("because", errno == EINVAL);
    report("not epoll", epoll_wait(listener, nowhere, 1, 0));
    report("because", errno == EINVAL);
    report("not open", close(12345));
    report("because", errno == EBADF);
    report("not accepted", accept4(-1, NULL, NULL, 0));
    report("because", errno == EBADF);
    watch(EPOLL_CTL_ADD, peer.fd, EPOLLIN);
    interrupt(&peer);
    report("the rest", attend(&peer));
    report("failed visits", part(&peer));
}

static struct peer inner;

/* A callback inside one handshake that meddles with another one. */
static int meddle(SSL *ssl, void *argument) {
    char data[16];
    (void)argument;
    if (inner.ssl == NULL || ssl == inner.ssl) return 1;
    SSL_do_handshake(inner.ssl);
    SSL_read(inner.ssl, data, 0);
    SSL_pending(inner.ssl);
    return 1;
}

static int meddle_and_free(SSL *ssl, void *argument) {
    (void)argument;
    if (inner.ssl != NULL && ssl != inner.ssl) {
        SSL_free(inner.ssl);
        close(inner.fd);
        inner.ssl = NULL;
    }
    return 1;
}

static void from_a_callback(bool frees) {
    inner = greet(send_clients(port, 1, 1, 0, true), true);
    SSL_CTX_set_cert_cb(context, frees ? meddle_and_free : meddle, NULL);
    struct peer outer = greet(send_clients(port, 1, 1, 0, true), true);
    await_hello(&outer);
    interrupt(&inner);
    interrupt(&outer);
    report("outer", attend(&outer));
    report("failed visits", part(&outer));
    if (!frees) report("inner", attend(&inner));
    if (!frees) report("failed visits", part(&inner));
    inner.ssl = NULL;
    if (frees) report("failed visits", failures_of(inner.client));
}

/* Connects and says no more than a recorded ClientHello. */
static void half_open_clients(int count) {
    SSL_CTX *client = client_context(0);
    SSL *ssl = SSL_new(client);
    BIO *out = BIO_new(BIO_s_mem());
    char *hello;
    SSL_set_connect_state(ssl);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
    CHECK(SSL_do_handshake(ssl) <= 0);
    long length = BIO_get_mem_data(out, &hello);
    for (int i = 0; i < count; i++) {
        int fd = connect_to(port);
        CHECK(send(fd, hello, length, 0) == length);
    }
    pause();
    _exit(0);
}

/* More handshakes in the middle than there are stacks for. */
static void crowd(int count) {
    struct rlimit limit = {.rlim_cur = count + 100, .rlim_max = count + 100};
    struct peer *peers = calloc(count, sizeof(*peers));
    int answered = 0, begun = 0;
    char data[4096];
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    pid_t clients = fork();
    if (clients == 0) half_open_clients(count);
    for (int i = 0; i < count; i++) {
        peers[i] = greet(clients, true);
        interrupt(&peers[i]);
        begun++;
    }
    for (int idle = 0; idle < 3;) {
        struct epoll_event events[64];
        int ready = epoll_wait(epfd, events, 64, 20);
        idle = ready == 0 ? idle + 1 : 0;
        for (int i = 0; i < ready; i++) {
            for (int j = 0; j < count; j++) {
                if (peers[j].fd == events[i].data.fd) CHECK(waits(peers[j].ssl, SSL_do_handshake(peers[j].ssl)));
            }
        }
    }
    for (int i = 0; i < count; i++) {
        answered += SSL_get_negotiated_group(peers[i].ssl) != 0 && SSL_get_state(peers[i].ssl) != TLS_ST_BEFORE;
        SSL_free(peers[i].ssl);
        close(peers[i].fd);
    }
    (void)data;
    kill(clients, SIGKILL);
    CHECK(waitpid(clients, NULL, 0) == clients);
    report("begun", begun);
    report("answered", answered);
    ordinary();
}

/* Sockets that become blocking before a handshake, and in the middle of one. */
static void becomes_blocking(void) {
    struct peer peer = greet(send_clients(port, 1, 1, 0, true), true);
    set_blocking(peer.fd, true);
    await_hello(&peer);
    report("blocking handshake", SSL_do_handshake(peer.ssl));
    report("attended", attend(&peer));
    report("failed visits", part(&peer));
    peer = interrupted();
    set_blocking(peer.fd, true);
    report("then blocking", SSL_do_handshake(peer.ssl));
    report("attended", attend(&peer));
    report("failed visits", part(&peer));
}

/* The handshake at the end of the process. */
static void exits(void) {
    interrupted();
    interrupted();
    puts("end");
    exit(0);
}

/* A client that says hello, and whose status is 0 if the answer begins with a handshake record and is all there. */
static pid_t send_onlooker(void) {
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0) return child;
    alarm(30);
    unsigned char data[4096];
    char *hello;
    int fd = connect_to(port), first = -1;
    ssize_t got, total = 0;
    SSL *ssl = SSL_new(client_context(0));
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_connect(ssl);
    long length = BIO_get_mem_data(SSL_get_wbio(ssl), &hello);
    CHECK(write(fd, hello, length) == length);
    while ((got = read(fd, data, sizeof(data))) > 0) {
        if (first < 0) first = data[0];
        total += got;
        /* The rest of the flight comes with its beginning, or not at all. */
        struct pollfd more = {.fd = fd, .events = POLLIN};
        if (poll(&more, 1, 1000) <= 0) break;
    }
    _exit(first == 22 && total > 500 ? 0 : first == 22 ? 1 : 2);
}

static struct peer interrupted_by_onlooker(void) {
    struct peer peer = greet(send_onlooker(), true);
    interrupt(&peer);
    return peer;
}

/* What a server does to a connection by its descriptor comes behind the answer that libssl has written. */
static void by_descriptor(const char *what) {
    struct peer peer = interrupted_by_onlooker();
    if (is(what, "shut")) CHECK(shutdown(peer.fd, SHUT_RDWR) == 0);
    if (is(what, "half-shut")) CHECK(shutdown(peer.fd, SHUT_WR) == 0);
    if (is(what, "send")) CHECK(send(peer.fd, "X", 1, 0) == 1);
    if (is(what, "write-parts")) {
        struct iovec part = {.iov_base = "X", .iov_len = 1};
        CHECK(writev(peer.fd, &part, 1) == 1);
    }
    if (is(what, "close-range")) CHECK(close_range(peer.fd, peer.fd, 0) == 0);
    if (is(what, "close-stream")) CHECK(fclose(fdopen(peer.fd, "r+")) == 0);
    report("without its answer", failures_of(peer.client));
    SSL_free(peer.ssl);
    if (!is(what, "close-range") && !is(what, "close-stream")) close(peer.fd);
}

/* The answer is out when the process ends by its own hand. */
static void by_signal(const char *what) {
    int status;
    pid_t onlooker = send_onlooker();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        struct peer peer = greet(onlooker, true);
        interrupt(&peer);
        if (is(what, "abort")) abort();
        if (is(what, "raise")) raise(SIGTERM);
        if (is(what, "kill")) kill(getpid(), SIGKILL);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    report("ended by", WTERMSIG(status));
    report("without its answer", failures_of(onlooker));
}

/* What a registration reports once is reported once. */
static void reports_once(void) {
    struct peer peer = interrupted();
    watch(EPOLL_CTL_MOD, peer.fd, EPOLLIN | EPOLLONESHOT);
    report("reported", wait_for(peer.fd, 10000));
    report("not armed again", wait_for(peer.fd, 100));
    report("not armed again", wait_for(peer.fd, 100));
    watch(EPOLL_CTL_MOD, peer.fd, EPOLLIN);
    report("the rest", attend(&peer));
    report("failed visits", part(&peer));
}

/* An SSL that waits for its client tells of itself what it tells without us. */
static void tells(void) {
    struct peer peer = interrupted();
    unsigned char finished[64];
    printf("state: %s\n", SSL_state_string_long(peer.ssl));
    report("should retry", BIO_should_retry(SSL_get_rbio(peer.ssl)));
    report("the rest", attend(&peer));
    report("failed visits", part(&peer));

    peer = interrupted();
    const SSL_CIPHER *cipher = SSL_get_current_cipher(peer.ssl);
    printf("cipher: %s\n", cipher == NULL ? "none" : SSL_CIPHER_get_name(cipher));
    report("the rest", attend(&peer));
    report("failed visits", part(&peer));

    peer = interrupted();
    report("finished", SSL_get_finished(peer.ssl, finished, sizeof(finished)));
    report("version", SSL_version(peer.ssl));
    report("the rest", attend(&peer));
    report("failed visits", part(&peer));
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : silent;
    signal(SIGPIPE, SIG_IGN);
    alarm(100);
    context = server_context(argc > 2 ? argv[2] : "rsa-2048");
    listener = listen_on_loopback(&port);
    epfd = epoll_create1(EPOLL_CLOEXEC);
    watch(EPOLL_CTL_ADD, listener, EPOLLIN);
    ordinary();
    if (is(what, "shutdown")) shutdown_inside();
    else if (is(what, "errors")) stale_errors();
    else if (is(what, "free")) free_inside(20);
    else if (is(what, "callbacks")) callbacks(false);
    else if (is(what, "own-callbacks")) callbacks(true);
    else if (is(what, "clear")) clear_inside();
    else if (is(what, "clear-and-repeat")) clear_and_repeat();
    else if (is(what, "threads")) other_threads();
    else if (is(what, "thread-ends")) thread_ends();
    else if (is(what, "reused-number")) reused_number();
    else if (is(what, "duplicated-number")) duplicated_number();
    else if (is(what, "replaced-number")) replaced_number();
    else if (is(what, "reregistered")) reregistered();
    else if (is(what, "odd-calls")) odd_calls();
    else if (is(what, "callback")) from_a_callback(false);
    else if (is(what, "callback-frees")) from_a_callback(true);
    else if (is(what, "crowd")) crowd(1500);
    else if (is(what, "blocking")) becomes_blocking();
    else if (is(what, "exit")) exits();
    else if (is(what, "one-shot")) reports_once();
    else if (is(what, "getters")) tells();
    else if (is(what, "abort") || is(what, "raise") || is(what, "kill")) by_signal(what);
    else if (is(what, "shut") || is(what, "half-shut") || is(what, "send") || is(what, "write-parts") ||
             is(what, "close-range") || is(what, "close-stream"))
        by_descriptor(what);
    else if (strncmp(what, "shared", 6) == 0 || is(what, "duplicated")) references(what);
    else transfer(what);
    ordinary();
    return finish();
}
