/* The clients of loops.c: a process of their own, with a script for each connection. */
#ifndef HASTEN_TEST_LOOPS_CLIENT_H
#define HASTEN_TEST_LOOPS_CLIENT_H

#include "loops.h"
#include "loops_keys.h"
#include <sys/time.h>

enum { CLIENTS = 8, NAMES = 2 };

struct client {
    pthread_t thread;
    int number, round;
    SSL_CTX *context;
    SSL_SESSION *sessions[2][NAMES];
};

/* One visit: what libssl wants to send or has to read goes by memory, so that it can be cut and delayed. */
struct call {
    SSL *ssl;
    int fd, index;
    struct habit habit;
    BIO *in, *out;
    bool answered;
};

/* The server has answered: whoever waits for that is told. */
static void tell_progress(struct call *call) {
    int fd = shared->progress[call->index][1];
    if (call->answered) return;
    call->answered = true;
    if (fd > 0) CHECK(write(fd, "x", 1) == 1);
}

static bool flush(struct call *call) {
    char data[16384];
    int length;
    while ((length = BIO_read(call->out, data, sizeof(data))) > 0) {
        int half = call->habit.splits ? length / 2 : 0;
        if (half > 0 && send(call->fd, data, half, MSG_NOSIGNAL) != half) return false;
        if (half > 0) usleep(2000);
        if (send(call->fd, data + half, length - half, MSG_NOSIGNAL) != length - half) return false;
    }
    return true;
}

/* Sends, waits and reads until there is more for libssl; 0 when nothing comes for too long. */
static int exchange(struct call *call) {
    char data[16384];
    if (!flush(call)) return -1;
    ssize_t length = recv(call->fd, data, sizeof(data), 0);
    if (length < 0 && errno == EAGAIN) return 0;
    if (length <= 0) return -1;
    if (call->habit.slow) usleep(3000);
    CHECK(BIO_write(call->in, data, length) == length);
    return 1;
}

/* The server will not go on, so that it does not matter which of both is faster. */
static enum opinion await_end(struct call *call) {
    char data[4096];
    ssize_t length;
    while ((length = recv(call->fd, data, sizeof(data), 0)) > 0) {
    }
    return length < 0 && errno == EAGAIN ? SILENCE : REFUSED;
}

enum step { CONNECT, WRITE, READ };

static int do_step(struct call *call, enum step step, char *answer) {
    if (step == CONNECT) return SSL_connect(call->ssl);
    return step == WRITE ? SSL_write(call->ssl, "ping", 4) : SSL_read(call->ssl, answer, 4);
}

static enum opinion converse(struct call *call) {
    char answer[4] = {0};
    for (enum step step = CONNECT; step <= READ;) {
        int result = do_step(call, step, answer);
        if (result > 0) {
            step++;
            if (step == WRITE && call->habit.leaving == LEAVES_AFTER) return flush(call) ? LEFT : REFUSED;
            continue;
        }
        if (SSL_get_error(call->ssl, result) != SSL_ERROR_WANT_READ) return REFUSED;
        int exchanged = exchange(call);
        if (exchanged <= 0) return exchanged == 0 ? SILENCE : REFUSED;
        tell_progress(call);
        if (call->habit.leaving == LEAVES_INSIDE) return LEFT;
        if (call->habit.drops) return await_end(call);
    }
    return memcmp(answer, "pong", 4) == 0 ? ANSWERED : REFUSED;
}

/* A server that keeps sessions removes one whose connection did not end well, sooner or later. */
static void forget(SSL_SESSION **kept) {
    SSL_SESSION_free(*kept);
    *kept = NULL;
}

static void note(struct call *call, SSL_SESSION **kept) {
    struct outcome *outcome = &shared->outcomes[call->index];
    const unsigned char *protocol;
    unsigned length;
    SSL_get0_alpn_selected(call->ssl, &protocol, &length);
    outcome->version = SSL_version(call->ssl);
    outcome->resumed = SSL_session_reused(call->ssl);
    outcome->group = SSL_get_negotiated_group(call->ssl);
    outcome->alpn = length;
    SSL_shutdown(call->ssl);
    flush(call);
    forget(kept);
    *kept = SSL_get1_session(call->ssl);
}

/* A socket whose port the server can look up. */
static int call_up(int index, int port) {
    struct sockaddr_in address = loopback(0);
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    socklen_t length = sizeof(address);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    shared->index_of_port[ntohs(address.sin_port)] = index + 1;
    address = loopback(port);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return fd;
}

static void prepare(struct client *client, struct call *call, SSL_SESSION *session) {
    static const char *groups[] = {"X25519:P-256:P-384", "P-256:X25519", "P-384:X25519:P-256", "X25519:P-256"};
    const struct habit *habit = &call->habit;
    call->ssl = SSL_new(client->context);
    call->in = BIO_new(BIO_s_mem());
    call->out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(call->in, -1);
    BIO_set_mem_eof_return(call->out, -1);
    SSL_set_bio(call->ssl, call->in, call->out);
    int version = habit->old ? TLS1_2_VERSION : TLS1_3_VERSION;
    CHECK(SSL_set_min_proto_version(call->ssl, version) && SSL_set_max_proto_version(call->ssl, version));
    CHECK(SSL_set1_groups_list(call->ssl, groups[habit->group]) == 1);
    CHECK(SSL_set_tlsext_host_name(call->ssl, habit->second_name ? "second" : "first") == 1);
    if (plan.selects_protocol) CHECK(SSL_set_alpn_protos(call->ssl, (const unsigned char *)"\4loop", 5) == 0);
    if (!habit->has_certificate) SSL_certs_clear(call->ssl);
    if (habit->resumes && session != NULL) CHECK(SSL_set_session(call->ssl, session) == 1);
}

/* A question, and nobody who waits for the answer. */
static enum opinion leave_at_hello(struct call *call) {
    struct linger now = {.l_onoff = 1};
    bool resets = call->habit.leaving == RESETS_AT_HELLO;
    CHECK(SSL_connect(call->ssl) <= 0 && flush(call));
    usleep(call->index % 4 * 1000);
    /* A reset that comes before the server has taken the connection may undo it: on a busy machine packets overtake. */
    for (int i = 0; i < PATIENCE_MS && resets && !shared->outcomes[call->index].welcomed; i++) usleep(1000);
    if (resets) setsockopt(call->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    return LEFT;
}

static void call_once(struct client *client, int index) {
    struct call call = {.index = index, .habit = habit_of(&plan, index)};
    SSL_SESSION **kept = &client->sessions[call.habit.old][call.habit.second_name];
    call.fd = call_up(index, shared->ports[plan.own_listeners ? index % plan.threads : 0]);
    prepare(client, &call, *kept);
    bool leaves = call.habit.leaving == LEAVES_AT_HELLO || call.habit.leaving == RESETS_AT_HELLO;
    enum opinion opinion = leaves ? leave_at_hello(&call) : converse(&call);
    if (opinion == ANSWERED) note(&call, kept);
    else forget(kept);
    if (opinion == REFUSED && getenv("LOOPS_TALK") != NULL) ERR_print_errors_fp(stderr);
    ERR_clear_error();
    SSL_free(call.ssl);
    close(call.fd);
    shared->outcomes[index].opinion = opinion;
}

static void *client_main(void *argument) {
    struct client *client = argument;
    for (int i = client->number; i < plan.connections; i += CLIENTS) call_once(client, client->round * plan.connections + i);
    return NULL;
}

/* Each byte that comes is a round. */
__attribute__((noreturn)) static void run_clients(int rounds) {
    static struct client clients[CLIENTS];
    SSL_CTX *context = client_context(0);
    char byte;
    use_key(context, ECDSA_KEY);
    for (int i = 0; i < CLIENTS; i++) clients[i] = (struct client){.number = i, .context = context};
    for (int i = ROUNDS * plan.connections; i < all_connections(&plan); i++) call_once(&clients[0], i);
    while (read(rounds, &byte, 1) == 1) {
        for (int i = 0; i < CLIENTS; i++) CHECK(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]) == 0);
        for (int i = 0; i < CLIENTS; i++) CHECK(pthread_join(clients[i].thread, NULL) == 0);
        for (int i = 0; i < CLIENTS; i++) clients[i].round++;
    }
    _exit(0);
}

/* Returns where to write the bytes. */
static int fork_clients(pid_t *process) {
    int rounds[2];
    CHECK(pipe2(rounds, O_CLOEXEC) == 0);
    *process = fork();
    CHECK(*process >= 0);
    if (*process == 0) {
        close(rounds[1]);
        run_clients(rounds[0]);
    }
    close(rounds[0]);
    return rounds[1];
}

#endif
