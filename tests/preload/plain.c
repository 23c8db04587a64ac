/* Servers that no handshake can be suspended in: everything must be as without the library. */
#include "common.h"
#include <netdb.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/un.h>
#include <ucontext.h>

static SSL_CTX *context;

static void in_memory(void) {
    static const char *keys[] = {"rsa-2048", "p-256", "p-384", "p-521", "ed25519"};
    int good = 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        context = server_context(keys[i]);
        SSL_CTX *clients[] = {client_context(TLS1_2_VERSION), client_context(TLS1_3_VERSION)};
        for (int j = 0; j < 10; j++) good += talk_in_memory(context, clients[j % 2]);
        SSL_CTX_free(clients[0]);
        SSL_CTX_free(clients[1]);
        SSL_CTX_free(context);
    }
    printf("in memory: %d\n", good);
}

static ucontext_t thread, fiber;
static SSL_CTX *fibers_server, *fibers_client;
static int fibers_good;

static void talk_in_fiber(void) { fibers_good += talk_in_memory(fibers_server, fibers_client); }

static __attribute__((noinline)) void talk_on(char *stack, size_t size) {
    CHECK(getcontext(&fiber) == 0);
    fiber.uc_stack.ss_sp = stack;
    fiber.uc_stack.ss_size = size;
    fiber.uc_link = &thread;
    makecontext(&fiber, talk_in_fiber, 0);
    CHECK(swapcontext(&thread, &fiber) == 0);
}

/* Coroutines have small stacks; below this one is a page that ends the process. */
static void on_small_stacks(size_t size) {
    const char *keys[] = {"rsa-2048", "p-256", "p-384"};
    const char *groups[] = {"X25519:P-256:P-384", "P-256:P-384", "P-384:P-256"};
    long page = sysconf(_SC_PAGESIZE);
    char *stack = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED && mprotect(stack, page, PROT_NONE) == 0);
    for (int i = 0; i < 3; i++) {
        fibers_server = server_context(keys[i]);
        for (int j = 0; j < 6; j++) {
            fibers_client = client_context(j % 2 ? TLS1_2_VERSION : TLS1_3_VERSION);
            CHECK(SSL_CTX_set1_groups_list(fibers_client, groups[j / 2]) == 1);
            for (int k = 0; k < 3; k++) talk_on(stack + page, size);
            SSL_CTX_free(fibers_client);
        }
        SSL_CTX_free(fibers_server);
    }
    munmap(stack, size + page);
    printf("on small stacks: %d\n", fibers_good);
}

/* The same inside an event loop that has nothing to do with it. */
static void in_memory_beside_epoll(void) {
    SSL_CTX *clients = client_context(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT};
    int good = 0, epfd = epoll_create1(0), pair[2];
    context = server_context("rsa-2048");
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(epoll_ctl(epfd, EPOLL_CTL_ADD, pair[0], &event) == 0);
    for (int i = 0; i < 40; i++) {
        CHECK(epoll_wait(epfd, &event, 1, 1000) == 1);
        good += talk_in_memory(context, clients);
    }
    printf("in memory beside epoll: %d\n", good);
}

static void *serve_blocking(void *argument) {
    int fd = (int)(long)argument;
    char data[8];
    SSL *ssl = SSL_new(context);
    bool good = SSL_set_fd(ssl, fd) == 1 && SSL_accept(ssl) == 1 && SSL_read(ssl, data, 8) == 4 &&
                SSL_write(ssl, "pong", 4) == 4 && SSL_shutdown(ssl) >= 0;
    SSL_free(ssl);
    close(fd);
    return (void *)(long)good;
}

static long resident_kib(void) {
    long pages = 0, total = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld %ld", &total, &pages) == 2);
    fclose(file);
    return pages * 4;
}

/* One thread for each connection: none may leave anything behind. */
static void threads(int count) {
    int port, good = 0, listener = listen_on_loopback(&port);
    long before = 0;
    context = server_context("p-256");
    pid_t clients = send_clients(port, 4, count / 4, 0, false);
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        void *result = NULL;
        long fd = accept(listener, NULL, NULL);
        if (i == count / 4) before = resident_kib();
        CHECK(fd >= 0 && pthread_create(&thread, NULL, serve_blocking, (void *)fd) == 0);
        CHECK(pthread_join(thread, &result) == 0);
        good += result != NULL;
    }
    printf("threads: %d, failed visits %d\n", good, failures_of(clients));
    printf("grows: %d\n", resident_kib() - before > 2048);
}

/* A non-blocking server with select(2), and one with poll(2). */
static void waiting_elsewhere(bool uses_poll) {
    enum { COUNT = 8, VISITS = 4 };
    int port, listener = listen_on_loopback(&port), good = 0;
    struct {
        SSL *ssl;
        int fd, stage;
    } connections[COUNT] = {0};
    context = server_context("rsa-2048");
    pid_t clients = send_clients(port, COUNT, VISITS, 0, false);
    set_blocking(listener, false);
    while (good < COUNT * VISITS) {
        struct pollfd polled[COUNT + 1] = {{.fd = listener, .events = POLLIN}};
        fd_set readable;
        int highest = listener;
        FD_ZERO(&readable);
        FD_SET(listener, &readable);
        for (int i = 0; i < COUNT; i++) {
            polled[i + 1] = (struct pollfd){.fd = connections[i].ssl ? connections[i].fd : -1, .events = POLLIN};
            if (connections[i].ssl == NULL) continue;
            FD_SET(connections[i].fd, &readable);
            if (connections[i].fd > highest) highest = connections[i].fd;
        }
        if (uses_poll) CHECK(poll(polled, COUNT + 1, 10000) > 0);
        else CHECK(select(highest + 1, &readable, NULL, NULL, NULL) > 0);
        for (int i = 0; i < COUNT; i++) {
            char data[8];
            int result = 0, fd = connections[i].fd;
            if (connections[i].ssl == NULL) {
                fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                if (fd < 0) continue;
                connections[i].ssl = SSL_new(context);
                connections[i].fd = fd;
                connections[i].stage = 0;
                SSL_set_accept_state(connections[i].ssl);
                SSL_set_fd(connections[i].ssl, fd);
            }
            if (connections[i].stage == 0) result = SSL_do_handshake(connections[i].ssl);
            if (connections[i].stage == 0 && result == 1) connections[i].stage = 1;
            if (connections[i].stage == 1) result = SSL_read(connections[i].ssl, data, 8);
            if (connections[i].stage == 1 && result == 4) {
                connections[i].stage = 2;
                CHECK(SSL_write(connections[i].ssl, "pong", 4) == 4);
            }
            if (connections[i].stage == 2) result = SSL_read(connections[i].ssl, data, 8);
            if (connections[i].stage == 2 && SSL_get_error(connections[i].ssl, result) == SSL_ERROR_ZERO_RETURN) {
                SSL_free(connections[i].ssl);
                close(fd);
                connections[i].ssl = NULL;
                good++;
            }
        }
    }
    printf("served: %d, failed visits %d\n", good, failures_of(clients));
}

/* Datagrams: their handshakes send again when a timer is up, in whatever state they are. */
static void datagrams(void) {
    int port = 0, epfd = epoll_create1(0);
    SSL_CTX *client_ctx = SSL_CTX_new(DTLS_client_method());
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof(address);
    struct epoll_event event = {.events = EPOLLIN};
    context = SSL_CTX_new(DTLS_server_method());
    use_new_key(context, "rsa-2048");
    for (int round = 0; round < 6; round++) {
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), status;
        address = loopback(0);
        CHECK(bind(fd, (struct sockaddr *)&address, length) == 0);
        CHECK(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
        port = ntohs(address.sin_port);
        pid_t client = fork();
        if (client == 0) {
            int mine = socket(AF_INET, SOCK_DGRAM, 0);
            struct sockaddr_in server = loopback(port);
            alarm(30);
            CHECK(connect(mine, (struct sockaddr *)&server, sizeof(server)) == 0);
            SSL *ssl = SSL_new(client_ctx);
            BIO *bio = BIO_new_dgram(mine, BIO_NOCLOSE);
            BIO_ctrl(bio, BIO_CTRL_DGRAM_SET_CONNECTED, 0, &server);
            SSL_set_bio(ssl, bio, bio);
            _exit(SSL_connect(ssl) == 1 && SSL_write(ssl, "ping", 4) == 4 ? 0 : 1);
        }
        CHECK(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) == 0);
        SSL *ssl = SSL_new(context);
        BIO *bio = BIO_new_dgram(fd, BIO_NOCLOSE);
        SSL_set_bio(ssl, bio, bio);
        SSL_set_accept_state(ssl);
        int result = 0;
        bool connected = false;
        while (result != 1) {
            CHECK(epoll_wait(epfd, &event, 1, 10000) == 1);
            if (!connected) {
                struct sockaddr_in peer;
                char byte;
                CHECK(recvfrom(fd, &byte, 1, MSG_PEEK, (struct sockaddr *)&peer, &length) >= 0);
                CHECK(connect(fd, (struct sockaddr *)&peer, sizeof(peer)) == 0);
                BIO_ctrl(bio, BIO_CTRL_DGRAM_SET_CONNECTED, 0, &peer);
                connected = true;
            }
            result = SSL_do_handshake(ssl);
            if (result != 1) CHECK(SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ);
            DTLSv1_handle_timeout(ssl);
        }
        SSL_free(ssl);
        close(fd);
        CHECK(waitpid(client, &status, 0) == client);
        printf("datagrams: %d\n", status);
    }
}

/* Some servers call again after a failure, and some use an SSL again, for another connection. */
static void failing(void) {
    int good = 0, failed = 0;
    context = server_context("p-256");
    SSL *ssl = SSL_new(context);
    SSL_set_accept_state(ssl);
    for (int connection = 0; connection < 2; connection++) {
        int pair[2];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && SSL_set_fd(ssl, pair[0]) == 1);
        CHECK(write(pair[1], "GET / HTTP/1.0\r\n\r\n", 18) == 18);
        for (int i = 0; i < 50; i++) {
            ERR_clear_error();
            int result = SSL_do_handshake(ssl);
            good += result == 1;
            failed += result < 1 && SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ;
        }
        CHECK(SSL_clear(ssl) == 1);
        close(pair[0]);
        close(pair[1]);
    }
    SSL_free(ssl);
    printf("failing: %d good, %d failed\n", good, failed);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    signal(SIGPIPE, SIG_IGN);
    alarm(100);
    if (is(what, "memory")) in_memory();
    else if (is(what, "memory-beside-epoll")) in_memory_beside_epoll();
    else if (is(what, "small-stacks")) on_small_stacks((size_t)atoi(argv[2]) << 10);
    else if (is(what, "threads")) threads(400);
    else if (is(what, "select")) waiting_elsewhere(false);
    else if (is(what, "poll")) waiting_elsewhere(true);
    else if (is(what, "datagrams")) datagrams();
    else if (is(what, "failing")) failing();
    else CHECK(false);
    return finish();
}
