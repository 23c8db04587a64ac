/*
 * A thread blocks deep in its stack while a handshake is suspended, and another thread works on what lies there: on a
 * condition variable, say, that the first one waits on.
 *
 * The frames of the suspended handshake belong there, too. Nobody may see them, and nothing of them may change.
 */
#include "serve.h"
#include <ucontext.h>

enum { WORDS = (600 << 10) / 8, STRIDE = 8, CONNECTIONS = 12 };

static uint64_t changes;

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

static __attribute__((noinline)) void block_deep(void) {
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
    changes += shared.mismatches;
}

static ucontext_t thread, fiber;

static void sleep_on_it(void) { usleep(10000); }

/* The thread blocks on another stack than its own. */
static void block_in_a_fiber(void) {
    enum { SIZE = 256 << 10 };
    char *stack = malloc(SIZE);
    CHECK(stack != NULL && getcontext(&fiber) == 0);
    fiber.uc_stack.ss_sp = stack;
    fiber.uc_stack.ss_size = SIZE;
    fiber.uc_link = &thread;
    makecontext(&fiber, sleep_on_it, 0);
    CHECK(swapcontext(&thread, &fiber) == 0);
    free(stack);
}

int main(int argc, char **argv) {
    bool in_a_fiber = argc > 1 && is(argv[1], "fiber");
    open_server("rsa-2048");
    for (int i = 0; i < CONNECTIONS; i++) serve_a_visitor(in_a_fiber ? block_in_a_fiber : block_deep);
    printf("changed words %llu\n", (unsigned long long)changes);
    return finish();
}
