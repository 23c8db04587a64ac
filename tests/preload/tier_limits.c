// Limits that a program meets after its start: it frees what it has and wants the promise of memory back, or it limits its own
// addresses. The argument says what it does. The last line of output is the end.
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size);

enum { OBJECTS = 8192, MB = 1 << 20, ALL_ARENAS = 4096 };
static unsigned char *objects[OBJECTS];

static void fail(const char *what) {
    fprintf(stderr, "wrong: %s (errno %d)\n", what, errno);
    _exit(3);
}

// A number of /proc/self/status, in MB.
static long status(const char *name) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long value = -1;
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) value = atol(line + strlen(name)) / 1024;
    if (file) fclose(file);
    if (value < 0) fail(name);
    return value;
}

static size_t size_of(int i) {
    return i % 16 ? 3000 + i % 7 * 4000 : 300000;
}

// Slowly at first: the library looks at what there is.
static void fill(int zeroed) {
    for (int i = 0; i < OBJECTS; i++) {
        objects[i] = zeroed ? calloc(1, size_of(i)) : malloc(size_of(i));
        if (!objects[i]) fail("no memory");
        for (size_t at = 0; zeroed && at < size_of(i); at++)
            if (objects[i][at]) fail("not zeroed");
        memset(objects[i], i % 251 + 1, size_of(i));
        if (i < 200) usleep(500);
    }
}

static void release(void) {
    for (int i = 0; i < OBJECTS; i++) {
        for (size_t at = 0; at < size_of(i); at++)
            if (objects[i][at] != i % 251 + 1) fail("another value");
        free(objects[i]);
    }
    char name[32];
    snprintf(name, sizeof name, "arena.%d.purge", ALL_ARENAS);
    if (mallctl(name, NULL, NULL, NULL, 0)) fail("purge");
}

// What is freed counts no more, and can be had again.
static void promises(int is_decommitted) {
    long before = status("VmData:");
    for (int round = 0; round < 3; round++) {
        fill(round);
        long full = status("VmData:") - before;
        release();
        long left = status("VmData:") - before;
        if (full < 200) fail("the objects do not count");
        // Near memory is only purged here.
        if (is_decommitted && left > full / 2) {
            fprintf(stderr, "%ld of %ld MB are left\n", left, full);
            fail("what was freed counts");
        }
    }
}

// Reserved addresses are not in the way of what the program allows itself.
static void addresses(const char *how) {
    fill(0);
    long reserved = status("VmSize:");
    if (reserved < MB) fail("nothing is reserved");
    struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY}, limit = {4096UL * MB, RLIM_INFINITY};
    pid_t child = vfork();
    if (child == 0) _exit(setrlimit(RLIMIT_AS, &none) ? 1 : 0);
    if (child < 0 || waitpid(child, NULL, 0) != child) fail("vfork");
    if (status("VmSize:") < MB) fail("a child of vfork has changed its parent");
    if (prlimit(0, RLIMIT_AS, NULL, &none) || prlimit(getppid(), RLIMIT_CORE, NULL, &none)) fail("a look at limits");
    if (status("VmSize:") < MB) fail("a look has changed something");
    int error = !strcmp(how, "setrlimit") ? setrlimit(RLIMIT_AS, &limit)
                : !strcmp(how, "prlimit") ? prlimit(getpid(), RLIMIT_AS, &limit, NULL)
                                          : syscall(SYS_prlimit64, 0, RLIMIT_AS, &limit, NULL);
    if (error) fail("the limit");
    if (status("VmSize:") > 4096) fail("reserved addresses count");
    void *map = mmap(NULL, 512UL * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) fail("a mapping that the limit allows");
    munmap(map, 512UL * MB);
    for (int round = 0; round < 3; round++) {
        release();
        fill(round);
    }
    release();
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    if (!strncmp(what, "promises", 8)) promises(!strcmp(what, "promises-taken-back"));
    else addresses(what);
    puts("all as it was");
    puts("end");
    fflush(stdout);
    return getchar() == EOF ? 0 : 1;
}
