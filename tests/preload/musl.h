// What the programs of this directory call, and musl does not have. It comes first in each of them.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

// Scenarios with coroutines fail.
#define getcontext(context) (-1)
#define makecontext(context, function, ...) ((void)(function))
#define swapcontext(from, to) (-1)

static inline int close_range(unsigned first, unsigned last, int flags) { return (int)syscall(SYS_close_range, first, last, flags); }

static inline int epoll_pwait2(int epfd, struct epoll_event *events, int max, const struct timespec *timeout, const sigset_t *mask) {
    return (int)syscall(SYS_epoll_pwait2, epfd, events, max, timeout, mask, 8);
}
