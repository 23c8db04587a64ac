/*
 * A thread blocks deep in its stack while a handshake is suspended, and another thread works on what lies there: on a
 * condition variable, say, that the first one waits on.
 *
 * The frames of the suspended handshake belong there, too. Nobody may see them, and nothing of them may change.
 */
#include "common.h"
#include <ucontext.h>

enum { WORDS = (600 << 10) / 8, STRIDE = 8, CONNECTIONS = 12 };

static SSL_CTX *server;
static int epfd, listener, port;

struct shared {
    volatile uint64_t *words;
    volatile bool stop;
    uint64_t rounds, mismatches;
};

/* Writes a new number to every line of the array, and looks whether the last one is still there. */
static void *work(void *argument) {
    struct shared *shared = argument;
    for (uint64_t round = 1; !shared->stop; round++) {
        for (int i = 0; i < WORDS; i += STRIDE) {
            shared->mismatches += shared->words[i] != round - 1;
            shared->words[i] = round;
        }
        shared->rounds = round;
    }
    return NULL;
}

static __attribute__((noinline)) uint64_t block_deep(void) {
    volatile uint64_t words[WORDS];
    static struct shared shared;
    pthread_t thread;
    for (int i = 0; i < WORDS; i++) words[i] = 0;
    shared = (struct shared){.words = words};
    CHECK(pthread_create(&thread, NULL, work, &shared) == 0);
    while (((volatile struct shared *)&shared)->rounds < 2) {
    }
    usleep(20000);
    shared.stop = true;
    CHECK(pthread_join(thread, NULL) == 0);
    return shared.mismatches;
}

static ucontext_t thread, fiber;

static void sleep_on_it(void) { usleep(10000); }

/* The thread blocks on another stack than its own. */
static uint64_t block_in_a_fiber(void) {
    enum { SIZE = 256 << 10 };
    char *stack = malloc(SIZE);
    CHECK(stack != NULL && getcontext(&fiber) == 0);
    fiber.uc_stack.ss_sp = stack;
    fiber.uc_stack.ss_size = SIZE;
    fiber.uc_link = &thread;
    makecontext(&fiber, sleep_on_it, 0);
    CHECK(swapcontext(&thread, &fiber) == 0);
    free(stack);
    return 0;
}

static uint64_t (*block)(void);

static void watch(int operation, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    CHECK(epoll_ctl(epfd, operation, fd, &event) == 0);
}

static void wait_for(int fd) {
    struct epoll_event event;
    for (int i = 0; i < 1000; i++) {
        if (epoll_wait(epfd, &event, 1, 20000) == 1 && event.data.fd == fd) return;
    }
    CHECK(false);
}

/* Serves one client; how many words of the stack have changed meanwhile. */
static uint64_t serve(void) {
    char data[8], byte;
    int result;
    uint64_t mismatches = 0;
    pid_t visitor = send_clients(port, 1, 1, 0, true);
    wait_for(listener);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(fd >= 0);
    watch(EPOLL_CTL_ADD, fd);
    SSL *ssl = SSL_new(server);
    SSL_set_accept_state(ssl);
    CHECK(SSL_set_fd(ssl, fd) == 1);
    while (recv(fd, &byte, 1, MSG_PEEK) < 0) usleep(100);
    for (bool first = true; (result = SSL_do_handshake(ssl)) != 1; first = false) {
        CHECK(SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ);
        if (first) mismatches = block();
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
    return mismatches;
}

int main(int argc, char **argv) {
    uint64_t mismatches = 0;
    block = argc > 1 && is(argv[1], "fiber") ? block_in_a_fiber : block_deep;
    signal(SIGPIPE, SIG_IGN);
    alarm(100);
    server = server_context("rsa-2048");
    listener = listen_on_loopback(&port);
    epfd = epoll_create1(EPOLL_CLOEXEC);
    watch(EPOLL_CTL_ADD, listener);
    for (int i = 0; i < CONNECTIONS; i++) mismatches += serve();
    printf("changed words %llu\n", (unsigned long long)mismatches);
    return finish();
}
