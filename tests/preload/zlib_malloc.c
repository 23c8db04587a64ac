/* A program with a malloc of its own, of the four functions that glibc's manual asks for and no more. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

/* In front of each block, where another malloc has its lengths: nonsense to it. */
struct head {
    size_t length, nonsense;
};

static char *next, *limit;

void *malloc(size_t length) {
    size_t whole = ((length + 15) & ~(size_t)15) + sizeof(struct head);
    if (!next || (size_t)(limit - next) < whole) {
        size_t chunk = whole > 64 << 20 ? whole : 64 << 20;
        next = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (next == MAP_FAILED) return NULL;
        limit = next + chunk;
    }
    struct head *head = (struct head *)next;
    next += whole;
    *head = (struct head){length, 0xfeedfacefeedface};
    return head + 1;
}

void free(void *block) {
    (void)block;
}

void *calloc(size_t count, size_t size) {
    return malloc(count * size);
}

void *realloc(void *block, size_t length) {
    void *larger = malloc(length);
    if (block && larger) {
        size_t before = ((struct head *)block)[-1].length;
        memcpy(larger, block, before < length ? before : length);
    }
    return larger;
}

enum { STREAMS = 4, LENGTH = 100000, BLOCKS = 64, BLOCK = 5000 };

static unsigned char plain[LENGTH], packed[2 * LENGTH], unpacked[LENGTH];

/* Some streams at the same time, and what came of the last. */
static int round_trip(int count, int level, uLong of) {
    z_stream streams[STREAMS] = {{0}};
    for (int i = 0; i < count; i++) {
        if (deflateInit(&streams[i], level) != Z_OK) return 1;
        streams[i].next_in = plain, streams[i].avail_in = of;
    }
    for (int i = 0; i < count; i++) {
        streams[i].next_out = packed, streams[i].avail_out = sizeof packed;
        if (deflate(&streams[i], Z_FINISH) != Z_STREAM_END || deflateEnd(&streams[i]) != Z_OK) return 1;
    }
    uLongf length = LENGTH;
    return uncompress(unpacked, &length, packed, streams[count - 1].total_out) != Z_OK || memcmp(plain, unpacked, of) != 0;
}

int main(void) {
    unsigned char *blocks[BLOCKS];
    for (int i = 0; i < LENGTH; i++) plain[i] = "etaoin shrdlu and the "[i * 7 % 22 ^ (i >> 10 & 1)];
    int bad = 0;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK);
        memset(blocks[i], i, BLOCK);
        bad += round_trip(i % STREAMS + 1, i % 9 + 1, i % 2 ? LENGTH : 1000);
    }
    for (int i = 0; i < BLOCKS; i++)
        for (int at = 0; at < BLOCK; at++) bad += blocks[i][at] != i;
    printf("%d bad\nend\n", bad);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
