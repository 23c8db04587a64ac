/*
 * Servers that take readiness at its word.
 *
 * One gives a connection up at its first event, and would meet it again if that came twice in one wait. Others look into the
 * socket, and take a connection that is readable and has nothing for one whose client is gone.
 */
#include "common.h"
#include <sys/ioctl.h>

enum { CLIENTS = 8, VISITS = 12, LEAVERS = 400, BUDGET = 2, EVENTS = 64 };

struct connection {
    SSL *ssl;
    int fd;
    bool is_up;
};

static SSL_CTX *context;
static int epfd, listener, port, done, twice, empty;

/* Clients that leave behind their first message. */
static pid_t send_leavers(void) {
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0) return child;
    char *hello;
    SSL *ssl = SSL_new(client_context(0));
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_connect(ssl);
    long length = BIO_get_mem_data(SSL_get_wbio(ssl), &hello);
    for (int i = 0; i < LEAVERS; i++) {
        int fd = connect_to(port);
        CHECK(write(fd, hello, length) == length);
        if (i % 2 == 0) usleep(500);
        close(fd);
    }
    _exit(0);
}

static void watch(int fd, void *connection) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = connection};
    CHECK(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) == 0);
}

static void welcome(void) {
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct connection *connection = calloc(1, sizeof(*connection));
        CHECK(connection != NULL);
        connection->ssl = SSL_new(context);
        connection->fd = fd;
        SSL_set_accept_state(connection->ssl);
        CHECK(SSL_set_fd(connection->ssl, fd) == 1);
        watch(fd, connection);
    }
}

static void part(struct connection *connection) {
    SSL_free(connection->ssl);
    close(connection->fd);
    free(connection);
    done++;
}

static bool waits(SSL *ssl, int result) { return SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ; }

/* Whether the socket has what it was reported for. */
static bool has_something(const char *how, int fd) {
    int unread = 0;
    char byte;
    if (is(how, "asks")) CHECK(ioctl(fd, FIONREAD, &unread) == 0);
    if (is(how, "peeks")) unread = recv(fd, &byte, 1, MSG_PEEK) > 0;
    return unread > 0 || is(how, "twice");
}

/* Goes on with a connection; false once it is gone. */
static void attend(const char *how, struct connection *connection, int *budget) {
    char data[8];
    int result;
    if (!has_something(how, connection->fd)) {
        empty++;
        part(connection);
        return;
    }
    if (!connection->is_up) {
        /* The others wait: they are reported again. */
        if (is(how, "twice") && --*budget < 0) return;
        result = SSL_do_handshake(connection->ssl);
        if (result != 1) {
            if (!waits(connection->ssl, result)) part(connection);
            return;
        }
        connection->is_up = true;
    }
    result = SSL_read(connection->ssl, data, sizeof(data));
    if (result <= 0) {
        if (!waits(connection->ssl, result)) part(connection);
        return;
    }
    CHECK(SSL_write(connection->ssl, "pong", 4) == 4);
    part(connection);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    struct epoll_event events[EVENTS];
    signal(SIGPIPE, SIG_IGN);
    alarm(100);
    context = server_context("rsa-2048");
    listener = listen_on_loopback(&port);
    set_blocking(listener, false);
    epfd = epoll_create1(EPOLL_CLOEXEC);
    watch(listener, NULL);
    pid_t clients = send_clients(port, CLIENTS, VISITS, 0, true);
    /* Who has left is rightly taken for gone. */
    pid_t leavers = is(how, "twice") ? send_leavers() : 0;
    int expected = CLIENTS * VISITS + (leavers > 0 ? LEAVERS : 0);
    while (done < expected) {
        int count = epoll_wait(epfd, events, EVENTS, -1), budget = BUDGET;
        CHECK(count > 0);
        for (int i = 0; i < count; i++) {
            for (int earlier = 0; earlier < i; earlier++) twice += events[earlier].data.ptr == events[i].data.ptr;
        }
        for (int i = 0; twice == 0 && i < count; i++) {
            if (events[i].data.ptr == NULL) welcome();
            else attend(how, events[i].data.ptr, &budget);
        }
        if (twice > 0) break;
    }
    printf("reported twice in one wait: %d\n", twice);
    printf("readable and empty: %d\n", empty);
    if (twice > 0) kill(clients, SIGKILL);
    CHECK(twice > 0 || leavers == 0 || failures_of(leavers) == 0);
    printf("failed visits: %d\n", twice > 0 ? -1 : failures_of(clients));
    return finish();
}
