/*
 * What a process that locks its memory in RAM holds there, in kilobytes: before its first stream, and when all streams of
 * a burst on many threads have ended. Where it may not lock as much, what happens to be there.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__LINE__, #condition))

static void check_failed(int line, const char *condition) {
    fprintf(stderr, "line %d: %s does not hold\n", line, condition);
    exit(3);
}

enum { THREADS = 24, LENGTH = 300000, STACK = 256 << 10 };

static unsigned char plain[LENGTH], packed[THREADS][LENGTH];
static pthread_barrier_t barrier;

static void print(const char *field) {
    char line[200];
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, field, strlen(field)) == 0) printf("%ld\n", strtol(line + strlen(field), NULL, 10));
    CHECK(fclose(status) == 0);
}

/* All begin at the same time, so that each wants tables of its own. */
static void *compress_at_all_levels(void *argument) {
    unsigned char *out = argument;
    for (int level = 1; level <= 9; level++) {
        uLongf length = LENGTH;
        pthread_barrier_wait(&barrier);
        CHECK(compress2(out, &length, plain, LENGTH, level) == Z_OK);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    unsigned seed = 1;
    /* An arena of malloc for each thread would be locked, too, and there is no telling how many it makes. */
    CHECK(mallopt(M_ARENA_MAX, 1) == 1);
    const char *field = mlockall(MCL_CURRENT | MCL_FUTURE) == 0 ? "VmLck:" : "VmRSS:";
    print(field);
    for (int i = 0; i < LENGTH; i++) {
        seed = seed * 1103515245u + 12345u;
        plain[i] = "the page of words "[seed >> 16 & 15];
    }
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, STACK) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], &attributes, compress_at_all_levels, packed[i]) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    print(field);
    return 0;
}
