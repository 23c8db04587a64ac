/* A server of one client at a time, in an event loop. */
#ifndef HASTEN_TEST_SERVE_H
#define HASTEN_TEST_SERVE_H

#include "common.h"

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

static void open_server(const char *kind) {
    signal(SIGPIPE, SIG_IGN);
    alarm(100);
    server = server_context(kind);
    listener = listen_on_loopback(&port);
    epfd = epoll_create1(EPOLL_CLOEXEC);
    CHECK(epfd >= 0);
    watch(listener);
}

/* Whether the client has its answer. What there is to do `meanwhile` is done while the handshake is under way. */
static bool serve_by(int (*handshake)(SSL *), void (*meanwhile)(void)) {
    char data[8], byte;
    int result;
    wait_for(listener);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(fd >= 0);
    watch(fd);
    SSL *ssl = SSL_new(server);
    SSL_set_accept_state(ssl);
    CHECK(SSL_set_fd(ssl, fd) == 1);
    while (recv(fd, &byte, 1, MSG_PEEK) < 0) usleep(100);
    while ((result = handshake(ssl)) < 0 && SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ) {
        if (meanwhile != NULL) meanwhile();
        meanwhile = NULL;
        wait_for(fd);
    }
    bool good = result == 1;
    while (good && (result = SSL_read(ssl, data, 8)) <= 0) {
        good = SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ;
        if (good) wait_for(fd);
    }
    good = good && SSL_write(ssl, "pong", 4) == 4;
    SSL_free(ssl);
    close(fd);
    return good;
}

__attribute__((unused)) static bool serve(void (*meanwhile)(void)) { return serve_by(SSL_do_handshake, meanwhile); }

/* Serves a client that takes its time, and must be content. */
__attribute__((unused)) static void serve_a_visitor(void (*meanwhile)(void)) {
    pid_t visitor = send_clients(port, 1, 1, 0, true);
    CHECK(serve(meanwhile));
    CHECK(failures_of(visitor) == 0);
}

#endif
