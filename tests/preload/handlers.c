/*
 * Signal handlers that wait for a moment, in a server with a suspended handshake.
 *
 * What they interrupt is an allocation, most likely, and libssl allocates: nothing may go on inside of them.
 */
#include "common.h"
#include <sys/time.h>

enum { CONNECTIONS = 8, ROUNDS = 20000, BLOCKS = 64 };

static SSL_CTX *server;
static int epfd, listener, port, inside;
static volatile sig_atomic_t signals, within;

static void wait_a_moment(int number) {
    struct timespec moment = {.tv_nsec = 20000};
    int error = errno;
    struct pollfd nothing = {.fd = -1};
    (void)number;
    within = 1;
    nanosleep(&moment, NULL);
    poll(&nothing, 1, 0);
    sched_yield();
    within = 0;
    signals++;
    errno = error;
}

/* libssl calls the server's allocator, too. */
static void *allocate(size_t size, const char *file, int line) {
    (void)file, (void)line;
    inside += within;
    return malloc(size);
}

static void *allocate_again(void *block, size_t size, const char *file, int line) {
    (void)file, (void)line;
    inside += within;
    return realloc(block, size);
}

static void release(void *block, const char *file, int line) {
    (void)file, (void)line;
    inside += within;
    free(block);
}

static void churn(void) {
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    void *blocks[BLOCKS] = {0};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        free(blocks[i % BLOCKS]);
        blocks[i % BLOCKS] = malloc(100 + i * 37 % 5000);
        CHECK(blocks[i % BLOCKS] != NULL);
    }
    while (signals < 4) {
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
}

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

static void serve(bool churns) {
    char data[8], byte;
    int result;
    pid_t visitor = send_clients(port, 1, 1, 0, true);
    wait_for(listener);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(fd >= 0);
    watch(fd);
    SSL *ssl = SSL_new(server);
    SSL_set_accept_state(ssl);
    CHECK(SSL_set_fd(ssl, fd) == 1);
    while (recv(fd, &byte, 1, MSG_PEEK) < 0) usleep(100);
    while ((result = SSL_do_handshake(ssl)) != 1) {
        CHECK(SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ);
        if (churns) churn();
        churns = false;
        wait_for(fd);
    }
    while ((result = SSL_read(ssl, data, 8)) <= 0) {
        CHECK(SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ);
        wait_for(fd);
    }
    CHECK(SSL_write(ssl, "pong", 4) == 4);
    SSL_free(ssl);
    close(fd);
    CHECK(failures_of(visitor) == 0);
}

int main(void) {
    struct sigaction action = {.sa_handler = wait_a_moment, .sa_flags = SA_RESTART};
    CHECK(CRYPTO_set_mem_functions(allocate, allocate_again, release) == 1);
    signal(SIGPIPE, SIG_IGN);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    server = server_context("rsa-2048");
    listener = listen_on_loopback(&port);
    epfd = epoll_create1(EPOLL_CLOEXEC);
    watch(listener);
    serve(false);
    for (int i = 0; i < CONNECTIONS; i++) {
        signals = 0;
        serve(true);
    }
    printf("OpenSSL inside of a handler: %d\n", inside);
    return finish();
}
