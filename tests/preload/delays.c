/*
 * A preloaded library in front of the C library, as tracers and user-space
 * networks put theirs: some calls take a while longer, before or after they
 * do their work, and let other threads go first. What can only happen between
 * two calls of a thread happens often then.
 *
 * Each run chooses anew how often each function is delayed. DELAYS_US is the
 * longest delay, 3000 unless told otherwise. With DELAYS_BY_LIBRARY delays
 * are calls of the C library, in which a preloaded library sees its caller
 * block in the middle of a function that it has called itself.
 *
 * Whoever asks for the time takes a lock, as with libfaketime; here it is one
 * that is delayed, and kept for a while: who asks for the time in there waits
 * for ever.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum site { BEFORE, AFTER, SITES };
enum function {
    ACCEPT4, CLOSE, EPOLL_CTL, EPOLL_WAIT, EPOLL_PWAIT, POLL, PPOLL, SELECT, PSELECT, READ, WRITE, RECV, SEND, GETSOCKOPT,
    SOCKETPAIR, FORK, LOCK, UNLOCK, FUNCTIONS
};

/* One call in so many is delayed. */
static const int rates[] = {3, 12, 50, 200, 100000};
static int rate_of[FUNCTIONS][SITES], longest_us = 3000;
static bool by_library;
static __thread uint64_t state;

static uint64_t next(void) {
    if (state == 0) state = (__builtin_ia32_rdtsc() << 20 ^ (uintptr_t)&state) | 1;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

__attribute__((constructor)) static void choose(void) {
    const char *longest = getenv("DELAYS_US");
    if (longest != NULL) longest_us = atoi(longest);
    by_library = getenv("DELAYS_BY_LIBRARY") != NULL;
    for (int i = 0; i < FUNCTIONS * SITES; i++) rate_of[i / SITES][i % SITES] = rates[next() % 5];
}

/* A system call that no preloaded library sees. */
static void call_kernel(long number, const void *argument) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(argument), "S"(0) : "rcx", "r11", "memory");
    (void)result;
}

static void delay(enum function function, enum site site) {
    uint64_t random = next();
    int rate = rate_of[function][site], error = errno;
    if (rate == 0 || random % rate != 0) return;
    struct timespec time = {.tv_nsec = (long)(random >> 32) % longest_us * 1000};
    if (random >> 62 == 0) call_kernel(SYS_sched_yield, NULL);
    else if (by_library) nanosleep(&time, NULL);
    else call_kernel(SYS_nanosleep, &time);
    errno = error;
}

#define DELAYED(function, type, name, parameters, arguments)                    \
    type name parameters {                                                      \
        static type(*original) parameters;                                      \
        if (original == NULL) original = dlsym(RTLD_NEXT, #name);               \
        delay(function, BEFORE);                                                \
        type result = original arguments;                                       \
        delay(function, AFTER);                                                 \
        return result;                                                          \
    }

DELAYED(ACCEPT4, int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags), (fd, a, n, flags))
DELAYED(CLOSE, int, close, (int fd), (fd))
DELAYED(EPOLL_CTL, int, epoll_ctl, (int epfd, int operation, int fd, struct epoll_event *e), (epfd, operation, fd, e))
DELAYED(EPOLL_WAIT, int, epoll_wait, (int epfd, struct epoll_event *e, int n, int time), (epfd, e, n, time))
DELAYED(EPOLL_PWAIT, int, epoll_pwait, (int epfd, struct epoll_event *e, int n, int time, const sigset_t *s), (epfd, e, n, time, s))
DELAYED(POLL, int, poll, (struct pollfd *p, nfds_t n, int time), (p, n, time))
DELAYED(PPOLL, int, ppoll, (struct pollfd *p, nfds_t n, const struct timespec *time, const sigset_t *s), (p, n, time, s))
DELAYED(SELECT, int, select, (int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *time), (n, r, w, x, time))
DELAYED(PSELECT, int, pselect, (int n, fd_set *r, fd_set *w, fd_set *x, const struct timespec *time, const sigset_t *s),
        (n, r, w, x, time, s))
DELAYED(READ, ssize_t, read, (int fd, void *data, size_t n), (fd, data, n))
DELAYED(WRITE, ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n))
DELAYED(RECV, ssize_t, recv, (int fd, void *data, size_t n, int flags), (fd, data, n, flags))
DELAYED(SEND, ssize_t, send, (int fd, const void *data, size_t n, int flags), (fd, data, n, flags))
DELAYED(GETSOCKOPT, int, getsockopt, (int fd, int level, int name, void *data, socklen_t *n), (fd, level, name, data, n))
DELAYED(SOCKETPAIR, int, socketpair, (int domain, int kind, int protocol, int fds[2]), (domain, kind, protocol, fds))
DELAYED(FORK, pid_t, fork, (void), ())
DELAYED(LOCK, int, pthread_mutex_lock, (pthread_mutex_t *m), (m))
DELAYED(UNLOCK, int, pthread_mutex_unlock, (pthread_mutex_t *m), (m))

int clock_gettime(clockid_t clock, struct timespec *time) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int (*original)(clockid_t, struct timespec *);
    if (original == NULL) original = dlsym(RTLD_NEXT, "clock_gettime");
    pthread_mutex_lock(&lock);
    int result = original(clock, time);
    delay(LOCK, AFTER);
    pthread_mutex_unlock(&lock);
    return result;
}
