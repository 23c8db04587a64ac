/* What a process and its child have open, before and after there was something to do. */
#ifdef WITH_ZLIB
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#define CHECK(condition) do { if (!(condition)) { perror(#condition); exit(1); } } while (0)
#else
#include "common.h"
#endif
#include <sys/resource.h>
#include <sys/wait.h>

static void work(void) {
#ifdef WITH_ZLIB
    static unsigned char plain[4096], packed[8192];
    unsigned long size = sizeof(packed);
    CHECK(compress(packed, &size, plain, sizeof(plain)) == Z_OK);
#else
    CHECK(talk_in_memory(server_context("p-256"), client_context(0)));
#endif
}

/* All but the first three, which are the test's. */
static void list(const char *who) {
    char path[64], link[256];
    for (int fd = 3; fd < 2048; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0) continue;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, link, sizeof(link) - 1);
        CHECK(length > 0);
        link[length] = 0;
        printf("%s %d %s%s\n", who, fd, link, flags & FD_CLOEXEC ? "" : " is passed on");
    }
    fflush(stdout);
}

/* A child by fork, and what it executes. */
static void list_of_children(const char *program) {
    for (int executes = 0; executes < 2; executes++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            if (executes) execl(program, program, "list", (char *)NULL);
            else list("fork");
            _exit(executes);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    if (strcmp(argv[1], "list") == 0) {
        list("exec");
        return 0;
    }
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = strtoul(argv[1], NULL, 10);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    bool works = argc > 2;
    if (works) work();
    list("self");
    list_of_children(argv[0]);
    puts("end");
    fflush(stdout);
    getchar();
    return 0;
}
