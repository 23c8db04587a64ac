/*
 * Signal handlers that wait for a moment, in a server with a suspended handshake.
 *
 * What they interrupt is an allocation, most likely, and libssl allocates: nothing may go on inside of them.
 */
#include "serve.h"
#include <sys/time.h>

enum { CONNECTIONS = 8, ROUNDS = 20000, BLOCKS = 64 };

static int inside;
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
    signals = 0;
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
}

int main(void) {
    struct sigaction action = {.sa_handler = wait_a_moment, .sa_flags = SA_RESTART};
    CHECK(CRYPTO_set_mem_functions(allocate, allocate_again, release) == 1);
    /* The alarm that ends a program that hangs is one of these signals here. */
    open_server("rsa-2048");
    alarm(0);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    serve_a_visitor(NULL);
    for (int i = 0; i < CONNECTIONS; i++) serve_a_visitor(churn);
    printf("OpenSSL inside of a handler: %d\n", inside);
    return finish();
}
