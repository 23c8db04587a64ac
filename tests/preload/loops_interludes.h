/* What a server of loops.c does between two calls into libssl, while a handshake has to wait. */
#ifndef HASTEN_TEST_LOOPS_INTERLUDES_H
#define HASTEN_TEST_LOOPS_INTERLUDES_H

#include "loops_callbacks.h"
#include <openssl/provider.h>
#include <sys/select.h>
#include <sys/wait.h>

/* As a launcher of programs does: the child owns nothing, and shares the parent's memory until it executes. */
static void spawn_with_vfork(struct connection *connection) {
    char *const arguments[] = {"true", NULL};
    int status;
    pid_t child = vfork();
    if (child == 0) {
        for (int fd = 3; fd < 256; fd++) close(fd);
        execv("/bin/true", arguments);
        _exit(127);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    expect(status == 0, connection, "a child of vfork failed");
}

static void spawn_with_fork(struct connection *connection, bool frees) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(5);
        if (frees) SSL_free(connection->ssl);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    expect(status == 0, connection, "a child of fork failed");
}

/* The client says that it has the server's answer; the socket's time limit says that it never will. */
static void *await_progress(void *argument) {
    struct connection *connection = argument;
    char byte;
    expect(read(shared->progress[connection->index][0], &byte, 1) == 1, connection, "no progress while it reads");
    return NULL;
}

static void await_in_select(struct connection *connection) {
    int fd = shared->progress[connection->index][0];
    struct timeval patience = {.tv_sec = PATIENCE_MS / 2000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    expect(select(fd + 1, &set, NULL, NULL, &patience) == 1, connection, "no progress while it selects");
}

static void await_in_poll(struct connection *connection) {
    struct pollfd waiting = {.fd = shared->progress[connection->index][0], .events = POLLIN};
    expect(poll(&waiting, 1, PATIENCE_MS / 2) == 1, connection, "no progress while it polls");
}

struct signalled {
    struct connection *connection;
    pthread_mutex_t lock;
    pthread_cond_t condition;
    bool done;
};

static void *signal_progress(void *argument) {
    struct signalled *signalled = argument;
    await_progress(signalled->connection);
    pthread_mutex_lock(&signalled->lock);
    signalled->done = true;
    pthread_cond_signal(&signalled->condition);
    pthread_mutex_unlock(&signalled->lock);
    return NULL;
}

static void await_on_condition(struct connection *connection) {
    struct signalled signalled = {connection, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, signal_progress, &signalled) == 0);
    pthread_mutex_lock(&signalled.lock);
    while (!signalled.done) pthread_cond_wait(&signalled.condition, &signalled.lock);
    pthread_mutex_unlock(&signalled.lock);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void *nothing(void *argument) { return argument; }

static void await_thread(void *(*run)(void *), struct connection *connection) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, connection) == 0 && pthread_join(thread, NULL) == 0);
}

static void play(struct connection *connection, enum interlude interlude) {
    if (interlude != NOTHING && interlude != REENTER) played(interludes[interlude].name);
    switch (interlude) {
    case SLEEP: usleep(1000 + connection->index % 8 * 1000); break;
    case VFORK: spawn_with_vfork(connection); break;
    case FORK: spawn_with_fork(connection, false); break;
    /* Where another thread may hold one of OpenSSL's locks, a stock child hangs now and then. */
    case FORK_AND_FREE: spawn_with_fork(connection, plan.threads == 1); break;
    case THREAD: await_thread(nothing, connection); break;
    case AWAIT_READ: await_progress(connection); break;
    case AWAIT_POLL: await_in_poll(connection); break;
    case AWAIT_SELECT: await_in_select(connection); break;
    case AWAIT_CONDITION: await_on_condition(connection); break;
    case AWAIT_JOIN: await_thread(await_progress, connection); break;
    case PROVIDER: expect(OSSL_PROVIDER_try_load(NULL, "null", 1) != NULL, connection, "no provider"); break;
    default: break;
    }
}

/* Until a connection has something to read, without the event loop. */
static bool wait_in_place(struct connection *connection) {
    struct pollfd waiting = {.fd = connection->fd, .events = POLLIN};
    struct timespec precise = {.tv_sec = PATIENCE_MS / 1000};
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(connection->fd, &set);
    switch (connection->habit.in_place) {
    case IN_POLL: return poll(&waiting, 1, PATIENCE_MS) == 1;
    case IN_PPOLL: return ppoll(&waiting, 1, &precise, NULL) == 1;
    case IN_SELECT: return select(connection->fd + 1, &set, NULL, NULL, &patience) == 1;
    default: return true;
    }
}

#endif
