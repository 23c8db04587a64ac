/*
 * What zlib does not do, and a program may rely on: take memory while it compresses, ask the kernel for anything, touch the
 * output behind what it has written, or take its bytes as alone on their stack. Plays the scenario that its argument names.
 */
#define _GNU_SOURCE
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__LINE__, #condition))

static void check_failed(int line, const char *condition) {
    fprintf(stderr, "line %d: %s does not hold\n", line, condition);
    exit(3);
}

enum { LENGTH = 400000, ROOM = 2 * LENGTH, UNTOUCHED = 0xee };

static unsigned char plain[LENGTH], packed[ROOM], unpacked[ROOM];
static z_stream strm;

static void fill(void) {
    unsigned seed = 1;
    for (int i = 0; i < LENGTH; i++) {
        seed = seed * 1103515245u + 12345u;
        plain[i] = seed >> 30 && i > 40 ? plain[i - 1 - (seed >> 18) % 40] : "etaoin shrdlu and the "[(seed >> 20) % 22];
    }
}

static int packs(size_t length) {
    strm.next_in = plain, strm.avail_in = length;
    strm.next_out = packed, strm.avail_out = ROOM;
    return deflate(&strm, Z_FINISH);
}

static int is_packed(const unsigned char *bytes, size_t length, int window_bits, const unsigned char *expected, size_t of) {
    z_stream back = {.next_in = (unsigned char *)bytes, .avail_in = length, .next_out = unpacked, .avail_out = ROOM};
    CHECK(inflateInit2(&back, window_bits) == Z_OK);
    int result = inflate(&back, Z_FINISH);
    inflateEnd(&back);
    return result == Z_STREAM_END && back.total_out == of && memcmp(unpacked, expected, of) == 0;
}

/* No more memory once the stream is open. */
static void memory(void) {
    for (int level = 1; level <= 9; level += 4) {
        CHECK(deflateInit(&strm, level) == Z_OK);
        long pages;
        FILE *file = fopen("/proc/self/statm", "r");
        CHECK(file && fscanf(file, "%ld", &pages) == 1 && fclose(file) == 0);
        struct rlimit before, now;
        CHECK(getrlimit(RLIMIT_AS, &before) == 0);
        now = (struct rlimit){pages * getpagesize(), before.rlim_max};
        CHECK(setrlimit(RLIMIT_AS, &now) == 0);
        int result = packs(LENGTH);
        CHECK(setrlimit(RLIMIT_AS, &before) == 0);
        CHECK(result == Z_STREAM_END && strm.total_out < LENGTH * 3 / 4);
        CHECK(is_packed(packed, strm.total_out, 15, plain, LENGTH));
        CHECK(deflateEnd(&strm) == Z_OK);
    }
    puts("packed");
}

/* A sandbox in which everything but reading, writing and leaving ends the process, around streams that are open. */
static void sandbox(int is_warm) {
    CHECK(deflateInit(&strm, 6) == Z_OK);
    if (is_warm) {
        CHECK(packs(LENGTH) == Z_STREAM_END && deflateReset(&strm) == Z_OK);
    }
    puts("packed");
    CHECK(fflush(stdout) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    int result = packs(LENGTH);
    syscall(SYS_exit, result != Z_STREAM_END);
}

/* The rest of the room stays as it was, whatever the level, and whoever looks. */
static void behind(void) {
    for (int level = 1; level <= 9; level++)
        for (size_t length = 1; length < LENGTH / 2; length = length * 3 / 2 + 7) {
            memset(packed, UNTOUCHED, sizeof packed);
            CHECK(deflateInit(&strm, level) == Z_OK);
            CHECK(packs(length) == Z_STREAM_END);
            for (size_t at = strm.total_out; at < ROOM; at++) CHECK(packed[at] == UNTOUCHED);
            CHECK(deflateEnd(&strm) == Z_OK);
        }
    puts("untouched");
}

/* Output in the place of the input, which zlib has copied by then. */
static void in_place(void) {
    for (int level = 1; level <= 9; level++)
        for (size_t length = 1000; length <= 30000; length += 2900)
            for (int gap = 0; gap <= 16; gap += 16) {
                memset(&strm, 0, sizeof strm);
                memcpy(packed + gap, plain, length);
                CHECK(deflateInit2(&strm, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
                strm.next_in = packed + gap, strm.avail_in = length;
                strm.next_out = packed, strm.avail_out = ROOM;
                CHECK(deflate(&strm, Z_FINISH) == Z_STREAM_END);
                CHECK(is_packed(packed, strm.total_out, -15, plain, length));
                CHECK(deflateEnd(&strm) == Z_OK);
            }
    puts("packed");
}

static volatile int handled;

static void handler(int signal) {
    (void)signal;
    handled = packs(LENGTH);
}

/* A signal handler on a piece of the main thread's stack, whose neighbours are the program's. */
static void handlers(void) {
    enum { STACK = 16 << 10, MARGIN = 64 << 10 };
    unsigned char around[MARGIN + STACK];
    memset(around, UNTOUCHED, sizeof around);
    CHECK(sigaltstack(&(stack_t){.ss_sp = around + MARGIN, .ss_size = STACK}, NULL) == 0);
    CHECK(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_ONSTACK}, NULL) == 0);
    for (int level = 1; level <= 9; level += 4) {
        CHECK(deflateInit(&strm, level) == Z_OK);
        CHECK(raise(SIGUSR1) == 0 && handled == Z_STREAM_END);
        for (int at = 0; at < MARGIN; at++) CHECK(around[at] == UNTOUCHED);
        CHECK(is_packed(packed, strm.total_out, 15, plain, LENGTH));
        CHECK(deflateEnd(&strm) == Z_OK);
    }
    CHECK(sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL) == 0);
    puts("packed");
}

/* What zlib answers about a stream, and about what is none any more. */
static void answers(void) {
    CHECK(deflateInit(&strm, 6) == Z_OK);
    printf("bound %lu", deflateBound(&strm, 1000));
    strm.data_type = Z_BINARY;
    strm.next_in = plain, strm.avail_in = 5000, strm.next_out = packed, strm.avail_out = ROOM;
    CHECK(deflate(&strm, Z_SYNC_FLUSH) == Z_OK);
    printf(", then %lu, type %d\n", deflateBound(&strm, 1000), strm.data_type);
    alloc_func alloc = strm.zalloc;
    strm.zalloc = NULL;
    printf("without an allocator: %d %d\n", deflate(&strm, Z_FINISH), deflateEnd(&strm));
    strm.zalloc = alloc;
    printf("with it: %d\n", deflateEnd(&strm));
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*play)(void);
    } scenarios[] = {{"memory", memory}, {"behind", behind}, {"in_place", in_place}, {"handlers", handlers}, {"answers", answers}};
    CHECK(count == 2);
    fill();
    if (strncmp(arguments[1], "sandbox", 7) == 0) sandbox(arguments[1][7] != 0);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(arguments[1], scenarios[i].name) == 0) scenarios[i].play();
    printf("end\n");
    CHECK(fflush(stdout) == 0);
    while (getchar() != EOF) {
    }
    return 0;
}
