/*
 * A server with an event loop, in the styles that servers have: what a
 * suspended handshake needs is to be called again when its connection is
 * reported, and each style asks for that in another way.
 */
#include "common.h"
#include <sys/time.h>

enum { CLIENTS = 16, VISITS = 4 };

struct style {
    uint32_t trigger;     /* EPOLLET, EPOLLONESHOT, or 0 for level */
    bool late;            /* register a connection when it first has to wait, not when it comes */
    bool one_direction;   /* register for what libssl wants, not for both */
    bool accept_function; /* SSL_accept instead of SSL_do_handshake */
    bool early_data;      /* SSL_read_early_data first */
    bool read_only;       /* no handshake function at all: SSL_read does it */
    bool own_bio;         /* a BIO that calls recv and send itself */
    bool plain_accept;    /* accept and fcntl instead of accept4 */
    bool pwait;           /* epoll_pwait */
    bool asleep_in_poll;  /* poll(2) on the epoll descriptor, then epoll_wait without waiting */
    bool nested;          /* one epoll instance watched by another */
    bool impatient;       /* call the handshake again and again until it is done */
    bool polls_inside;    /* wait with poll(2) for the one connection until its handshake is done */
    bool ignores;         /* take no notice of the first events of a connection */
    bool small_batches;   /* one event at a time */
    bool reopens;         /* a new epoll instance every few turns, under the same number */
};

struct connection {
    SSL *ssl;
    int fd, turn, ignored;
    bool registered, done_early;
    enum { SHAKING, SERVING, CLOSING } stage;
    struct connection *next, **link;
};

struct server {
    struct style style;
    SSL_CTX *context;
    int listener, epfd, outer, served, failed, expected;
    struct connection *connections;
};

static int own_read(BIO *bio, char *data, int length) {
    ssize_t count = recv(*(int *)BIO_get_data(bio), data, length, 0);
    BIO_clear_retry_flags(bio);
    if (count < 0 && errno == EAGAIN) BIO_set_retry_read(bio);
    return count;
}

static int own_write(BIO *bio, const char *data, int length) {
    ssize_t count = send(*(int *)BIO_get_data(bio), data, length, MSG_NOSIGNAL);
    BIO_clear_retry_flags(bio);
    if (count < 0 && errno == EAGAIN) BIO_set_retry_write(bio);
    return count;
}

static long own_ctrl(BIO *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP;
}

static BIO *own_bio(int *fd) {
    static BIO_METHOD *method;
    if (method == NULL) {
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "own");
        BIO_meth_set_read(method, own_read);
        BIO_meth_set_write(method, own_write);
        BIO_meth_set_ctrl(method, own_ctrl);
    }
    BIO *bio = BIO_new(method);
    BIO_set_data(bio, fd);
    BIO_set_init(bio, 1);
    return bio;
}

static void watch(struct server *server, struct connection *connection, uint32_t events) {
    struct epoll_event event = {.events = events | server->style.trigger, .data.ptr = connection};
    int operation = connection->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    connection->registered = true;
    CHECK(epoll_ctl(server->epfd, operation, connection->fd, &event) == 0);
}

static void end(struct server *server, struct connection *connection, bool good) {
    if (good) server->served++;
    else server->failed++;
    if (!good) ERR_print_errors_fp(stderr);
    *connection->link = connection->next;
    if (connection->next != NULL) connection->next->link = connection->link;
    SSL_free(connection->ssl);
    close(connection->fd);
    free(connection);
}

static int handshake(struct server *server, struct connection *connection) {
    if (server->style.read_only) return 1;
    if (server->style.early_data && !connection->done_early) {
        char data[64];
        size_t length = 0;
        int result = SSL_read_early_data(connection->ssl, data, sizeof(data), &length);
        if (result != SSL_READ_EARLY_DATA_FINISH) return -1;
        connection->done_early = true;
    }
    return server->style.accept_function ? SSL_accept(connection->ssl) : SSL_do_handshake(connection->ssl);
}

/* One attempt to go on: 1 when the stage is over, 0 to wait, -1 when the connection has failed. */
static int attempt(struct server *server, struct connection *connection) {
    char data[16];
    int result;
    switch (connection->stage) {
    case SHAKING:
        result = handshake(server, connection);
        break;
    case SERVING:
        result = SSL_read(connection->ssl, data, sizeof(data));
        if (result == 4 && memcmp(data, "ping", 4) == 0) result = SSL_write(connection->ssl, "pong", 4);
        break;
    default:
        result = SSL_read(connection->ssl, data, sizeof(data));
        if (SSL_get_error(connection->ssl, result) == SSL_ERROR_ZERO_RETURN) return 1;
        if (result > 0) return -1;
    }
    if (result > 0) return 1;
    int error = SSL_get_error(connection->ssl, result);
    bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    if (waits) CHECK(SSL_want(connection->ssl) == (error == SSL_ERROR_WANT_READ ? SSL_READING : SSL_WRITING));
    if (!waits) fprintf(stderr, "stage %d: error %d, errno %d\n", connection->stage, error, errno);
    return waits ? 0 : -1;
}

static void step(struct server *server, struct connection *connection) {
    const struct style *style = &server->style;
    if (style->ignores && connection->stage == SHAKING && connection->ignored++ < 40) return;
    for (;;) {
        int outcome = attempt(server, connection);
        if (outcome < 0) return end(server, connection, false);
        if (outcome > 0 && connection->stage == CLOSING) return end(server, connection, true);
        if (outcome > 0) {
            connection->stage++;
            continue;
        }
        if (style->impatient && connection->stage == SHAKING) continue;
        if (style->polls_inside && connection->stage == SHAKING) {
            struct pollfd waiting = {.fd = connection->fd, .events = POLLIN};
            if (poll(&waiting, 1, 5000) != 1) return end(server, connection, false);
            continue;
        }
        break;
    }
    uint32_t wanted = style->one_direction && SSL_want(connection->ssl) == SSL_WRITING ? EPOLLOUT : EPOLLIN;
    if (!connection->registered || style->trigger & EPOLLONESHOT || style->one_direction) {
        watch(server, connection, style->one_direction ? wanted : EPOLLIN | EPOLLRDHUP);
    }
}

static void welcome(struct server *server) {
    int flags = server->style.plain_accept ? 0 : SOCK_NONBLOCK | SOCK_CLOEXEC;
    int fd = flags != 0 ? accept4(server->listener, NULL, NULL, flags) : accept(server->listener, NULL, NULL);
    if (fd < 0) return;
    set_blocking(fd, false);
    struct connection *connection = calloc(1, sizeof(*connection));
    connection->fd = fd;
    connection->ssl = SSL_new(server->context);
    connection->next = server->connections;
    connection->link = &server->connections;
    if (connection->next != NULL) connection->next->link = &connection->next;
    server->connections = connection;
    SSL_set_accept_state(connection->ssl);
    if (server->style.own_bio) {
        BIO *bio = own_bio(&connection->fd);
        SSL_set_bio(connection->ssl, bio, bio);
    } else {
        CHECK(SSL_set_fd(connection->ssl, fd) == 1);
    }
    if (!server->style.late) watch(server, connection, EPOLLIN | EPOLLRDHUP);
    step(server, connection);
}

static int next_events(struct server *server, struct epoll_event *events, int max) {
    const struct style *style = &server->style;
    if (style->asleep_in_poll) {
        struct pollfd waiting = {.fd = server->epfd, .events = POLLIN};
        poll(&waiting, 1, 1000);
        return epoll_wait(server->epfd, events, max, 0);
    }
    if (style->nested) {
        struct epoll_event outer;
        epoll_wait(server->outer, &outer, 1, 1000);
        return epoll_wait(server->epfd, events, max, 0);
    }
    if (style->pwait) {
        sigset_t none;
        sigemptyset(&none);
        return epoll_pwait(server->epfd, events, max, 1000, &none);
    }
    return epoll_wait(server->epfd, events, max, 1000);
}

static void open_epoll(struct server *server) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    int old = server->epfd;
    if (old >= 0) close(old);
    server->epfd = epoll_create1(EPOLL_CLOEXEC);
    CHECK(server->epfd >= 0 && (old < 0 || server->epfd == old));
    CHECK(epoll_ctl(server->epfd, EPOLL_CTL_ADD, server->listener, &event) == 0);
    for (struct connection *connection = server->connections; connection != NULL; connection = connection->next) {
        connection->registered = false;
        watch(server, connection, EPOLLIN | EPOLLRDHUP);
    }
    if (server->style.nested) {
        server->outer = epoll_create1(EPOLL_CLOEXEC);
        CHECK(epoll_ctl(server->outer, EPOLL_CTL_ADD, server->epfd, &event) == 0);
    }
}

static void *serve(void *argument) {
    struct server *server = argument;
    struct epoll_event events[64];
    int turns = 0, idle = 0, max = server->style.small_batches ? 1 : 64;
    set_blocking(server->listener, false);
    server->epfd = -1;
    open_epoll(server);
    while (server->served + server->failed < server->expected && idle < 10) {
        int count = next_events(server, events, max);
        CHECK(count >= 0 || errno == EINTR);
        idle = count == 0 ? idle + 1 : 0;
        for (int i = 0; i < count; i++) {
            CHECK(events[i].events != 0);
            if (events[i].data.ptr == NULL) welcome(server);
            else step(server, events[i].data.ptr);
        }
        if (server->style.reopens && ++turns % 5 == 0) open_epoll(server);
    }
    return NULL;
}

static struct style style_named(const char *name) {
    if (is(name, "level")) return (struct style){0};
    if (is(name, "edge")) return (struct style){.trigger = EPOLLET};
    if (is(name, "oneshot")) return (struct style){.trigger = EPOLLONESHOT};
    if (is(name, "late")) return (struct style){.late = true, .one_direction = true, .own_bio = true};
    if (is(name, "late-oneshot")) return (struct style){.late = true, .trigger = EPOLLONESHOT, .own_bio = true};
    if (is(name, "one-direction")) return (struct style){.one_direction = true, .plain_accept = true};
    if (is(name, "accept")) return (struct style){.accept_function = true, .plain_accept = true};
    if (is(name, "early-data")) return (struct style){.early_data = true, .trigger = EPOLLET};
    if (is(name, "read-only")) return (struct style){.read_only = true};
    if (is(name, "own-bio")) return (struct style){.own_bio = true, .trigger = EPOLLET};
    if (is(name, "pwait")) return (struct style){.pwait = true};
    if (is(name, "asleep-in-poll")) return (struct style){.asleep_in_poll = true};
    if (is(name, "nested")) return (struct style){.nested = true};
    if (is(name, "impatient")) return (struct style){.impatient = true};
    if (is(name, "polls-inside")) return (struct style){.polls_inside = true};
    if (is(name, "ignores")) return (struct style){.ignores = true};
    if (is(name, "small-batches")) return (struct style){.small_batches = true};
    CHECK(is(name, "reopens"));
    return (struct style){.reopens = true};
}

/* Usage: loop STYLE [KEY [VERSION [THREADS]]] */
int main(int argc, char **argv) {
    const char *key = argc > 2 ? argv[2] : "rsa-2048";
    int version = argc > 3 && is(argv[3], "1.2") ? TLS1_2_VERSION : TLS1_3_VERSION;
    int threads = argc > 4 ? atoi(argv[4]) : 1, served = 0, failed = 0;
    struct server servers[4];
    pid_t clients[4];
    pthread_t loops[4];
    CHECK(argc > 1 && threads >= 1 && threads <= 4);
    signal(SIGPIPE, SIG_IGN);
    alarm(100);
    SSL_CTX *context = server_context(key);
    if (is(argv[1], "early-data")) SSL_CTX_set_max_early_data(context, 16384);
    for (int i = 0; i < threads; i++) {
        int port;
        servers[i] = (struct server){.style = style_named(argv[1]), .context = context, .expected = CLIENTS * VISITS};
        servers[i].listener = listen_on_loopback(&port);
        clients[i] = send_clients(port, CLIENTS, VISITS, version, false);
    }
    for (int i = 1; i < threads; i++) CHECK(pthread_create(&loops[i], NULL, serve, &servers[i]) == 0);
    serve(&servers[0]);
    for (int i = 0; i < threads; i++) {
        if (i > 0) pthread_join(loops[i], NULL);
        served += servers[i].served;
        failed += servers[i].failed + failures_of(clients[i]);
    }
    SSL_CTX_free(context);
    printf("served %d, failed %d, errors left %d\n", served, failed, ERR_peek_error() != 0);
    return finish();
}
