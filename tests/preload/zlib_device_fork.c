/*
 * Forks of a process that has a device for compression: while it rests, and while a thread of the parent compresses.
 * Whoever goes on must get the right bytes, and must not wait for threads that only the parent has.
 *
 * Usage: zlib_device_fork [CONTROL ENGINE], the control file of the simulated devices and the engine's place in it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
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

#include "device.h"

enum { LENGTH = 100000, CHILDREN = 12, PACES = 20 };

static unsigned char plain[LENGTH];

/* A stream of a single call, as devices get them. */
static void pack(void) {
    static __thread unsigned char packed[2 * LENGTH], unpacked[LENGTH + 1];
    uLongf packed_length = sizeof packed, unpacked_length = sizeof unpacked;
    CHECK(compress2(packed, &packed_length, plain, LENGTH, 6) == Z_OK);
    CHECK(uncompress(unpacked, &unpacked_length, packed, packed_length) == Z_OK);
    CHECK(unpacked_length == LENGTH && memcmp(plain, unpacked, LENGTH) == 0);
}

/* Until the device has done something for a session that comes after those. */
static void pack_until_it_works(uint64_t sessions) {
    do pack();
    while (has_device() && sessions_so_far() == sessions);
    /* Some are questions of its start, and some may be another process's. */
    uint64_t before = operations_so_far();
    while (has_device() && operations_so_far() < before + 8) pack();
}

static atomic_bool over;

static void *pack_on(void *nothing) {
    while (!over) pack();
    return nothing;
}

static void forks(bool while_it_packs) {
    pthread_t other;
    over = false;
    if (while_it_packs) CHECK(pthread_create(&other, NULL, pack_on, NULL) == 0);
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        usleep((unsigned)i * 137);
        uint64_t sessions = sessions_so_far();
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(60);
            for (int pace = 0; pace < PACES; pace++) pack();
            /* Where no other process opens sessions, the new one is the child's. */
            if (!while_it_packs && i == 0) pack_until_it_works(sessions);
            /* With destructors, which must not touch what is the parent's either. */
            exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        pack();
    }
    over = true;
    if (while_it_packs) CHECK(pthread_join(other, NULL) == 0);
    printf("%d children\n", CHILDREN);
}

int main(int argc, char **argv) {
    /* What is buffered at a fork would be written twice. */
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc > 2) read_device(argv[1], (enum engine)atoi(argv[2]));
    for (int i = 0; i < LENGTH; i++) plain[i] = (unsigned char)("the page of words "[i * i % 17] + i % 5);
    alarm(100);
    pack_until_it_works(0);
    forks(false);
    forks(true);
    puts("end");
    while (getchar() != EOF) {
    }
    return 0;
}
