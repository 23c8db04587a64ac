/*
 * Streams in many threads at once, and streams that a fork makes two of. Prints what was unpacked, which must not
 * depend on who has packed it.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__LINE__, #condition))

static void check_failed(int line, const char *condition) {
    fprintf(stderr, "line %d: %s does not hold\n", line, condition);
    _exit(3);
}

enum { LENGTH = 200000, THREADS = 8, STREAMS = 24 };

static void fill(unsigned char *plain, unsigned seed) {
    for (int i = 0; i < LENGTH; i++) {
        seed = seed * 1103515245u + 12345u;
        plain[i] = "the page of words "[seed >> 16 & 15] + (seed >> 28 == 0);
    }
}

/* The rest of a stream that has had `at` bytes. Returns the length of what both parts have made. */
static uLong finish(z_stream *strm, unsigned char *plain, int at, unsigned char *packed, uLong room) {
    strm->next_in = plain + at, strm->avail_in = (uInt)(LENGTH - at);
    strm->next_out = packed + strm->total_out, strm->avail_out = (uInt)(room - strm->total_out);
    CHECK(deflate(strm, Z_FINISH) == Z_STREAM_END);
    uLong length = strm->total_out;
    CHECK(deflateEnd(strm) == Z_OK);
    return length;
}

static bool is_right(const unsigned char *packed, uLong length, const unsigned char *plain) {
    static __thread unsigned char unpacked[LENGTH + 1];
    uLongf unpacked_length = sizeof unpacked;
    return uncompress(unpacked, &unpacked_length, packed, length) == Z_OK && unpacked_length == LENGTH &&
           memcmp(unpacked, plain, LENGTH) == 0;
}

static void *thread_main(void *argument) {
    unsigned number = *(unsigned *)argument;
    uLong room = compressBound(LENGTH) + 1000;
    unsigned char *plain = malloc(LENGTH), *packed = malloc(room);
    for (unsigned i = 0; i < STREAMS; i++) {
        z_stream strm = {0};
        int first = (int)(i * 7919 % LENGTH);
        fill(plain, number * STREAMS + i);
        CHECK(deflateInit(&strm, (int)(i % 9) + 1) == Z_OK);
        strm.next_in = plain, strm.avail_in = (uInt)first;
        strm.next_out = packed, strm.avail_out = (uInt)room;
        CHECK(deflate(&strm, i % 3 == 0 ? Z_SYNC_FLUSH : Z_NO_FLUSH) == Z_OK || first == 0);
        CHECK(is_right(packed, finish(&strm, plain, first, packed, room), plain));
    }
    free(plain);
    free(packed);
    return NULL;
}

static void threads(void) {
    pthread_t started[THREADS];
    unsigned numbers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&started[i], NULL, thread_main, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(started[i], NULL) == 0);
    printf("%d streams\n", THREADS * STREAMS);
}

/* Parent and child both go on with the stream that was open, while threads of the parent are inside of deflate. */
static void forks(void) {
    static unsigned char plain[LENGTH], packed[2 * LENGTH];
    unsigned number = THREADS;
    for (int level = 1; level <= 9; level++) {
        pthread_t busy;
        z_stream strm = {0};
        int status;
        fill(plain, (unsigned)level);
        CHECK(deflateInit(&strm, level) == Z_OK);
        strm.next_in = plain, strm.avail_in = LENGTH / 3;
        strm.next_out = packed, strm.avail_out = sizeof packed;
        CHECK(deflate(&strm, Z_NO_FLUSH) == Z_OK);
        CHECK(pthread_create(&busy, NULL, thread_main, &number) == 0);
        pid_t child = fork();
        CHECK(child >= 0);
        bool right = is_right(packed, finish(&strm, plain, LENGTH / 3, packed, sizeof packed), plain);
        if (child == 0) _exit(right ? 0 : 1);
        CHECK(right && waitpid(child, &status, 0) == child && status == 0);
        CHECK(pthread_join(busy, NULL) == 0);
    }
    puts("9 streams twice");
}

int main(void) {
    threads();
    forks();
    puts("end");
    CHECK(fflush(stdout) == 0);
    while (getchar() != EOF) {
    }
    return 0;
}
