/* Streams on threads whose stacks are as short as they may be. Prints how much was unpacked. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__LINE__, #condition))

static void check_failed(int line, const char *condition) {
    fprintf(stderr, "line %d: %s does not hold\n", line, condition);
    exit(3);
}

enum { LENGTH = 120000, PIECE = 3000 };

static unsigned char plain[LENGTH], packed[2 * LENGTH], unpacked[LENGTH];

/* Kinds of data that go to different engines. */
static void fill(int kind) {
    unsigned seed = 1;
    for (int i = 0; i < LENGTH; i++) {
        seed = seed * 1103515245u + 12345u;
        const unsigned char bytes[] = {"the page of words "[seed >> 16 & 15], seed >> 24, seed >> 30};
        plain[i] = bytes[kind];
    }
}

struct call {
    int level, flush;
};

static void *thread_main(void *argument) {
    struct call *call = argument;
    z_stream strm = {.next_out = packed, .avail_out = sizeof packed};
    CHECK(deflateInit(&strm, call->level) == Z_OK);
    for (int i = 0; i < LENGTH; i += PIECE) {
        strm.next_in = plain + i, strm.avail_in = PIECE;
        CHECK(deflate(&strm, i % (3 * PIECE) == 0 ? call->flush : Z_NO_FLUSH) == Z_OK);
    }
    CHECK(deflate(&strm, Z_FINISH) == Z_STREAM_END);
    uLong length = strm.total_out;
    CHECK(deflateEnd(&strm) == Z_OK);
    uLongf unpacked_length = LENGTH;
    CHECK(uncompress(unpacked, &unpacked_length, packed, length) == Z_OK);
    CHECK(unpacked_length == LENGTH && memcmp(unpacked, plain, LENGTH) == 0);
    return NULL;
}

static void on_a_stack_of(size_t length, struct call call) {
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, length) == 0);
    CHECK(pthread_create(&thread, &attributes, thread_main, &call) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_attr_destroy(&attributes) == 0);
}

int main(void) {
    static const int flushes[] = {Z_NO_FLUSH, Z_SYNC_FLUSH};
    int streams = 0;
    for (size_t length = 16 << 10; length <= 64 << 10; length += 4 << 10)
        for (int kind = 0; kind < 3; kind++) {
            fill(kind);
            for (int level = 1; level <= 9; level += 4)
                for (int i = 0; i < 2; i++, streams++)
                    on_a_stack_of(length, (struct call){level, flushes[i]});
        }
    printf("%d streams\nend\n", streams);
    CHECK(fflush(stdout) == 0);
    while (getchar() != EOF) {
    }
    return 0;
}
