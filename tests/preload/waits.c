/*
 * A thread waits for what another does once a client of this very thread has its answer.
 *
 * The client begins its handshake; the server calls into libssl once, and then
 * asks for a lock, or reads. Stock, the answer is on its way by then.
 */
#include "serve.h"
#include <limits.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <threads.h>

static SSL_CTX *client;
static const char *what;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static mtx_t c_mutex;
static FILE *stream;
static int stream_end, file, event;
static FILE *output;
static int output_end, lingering, lingering_end;
static pthread_spinlock_t spinlock;
/* More than a pipe holds. */
enum { LINES = 9000, LINE = 20 };
static char lines[LINES * LINE + 1];

/* What the other thread reads once the client has its answer. */
static bool is_printed(void) {
    return is(what, "print") || is(what, "print-text") || is(what, "print-block") || is(what, "print-descriptor");
}

static void read_to_the_end(int fd, ssize_t length) {
    char data[4096];
    ssize_t got;
    while (length > 0 && (got = read(fd, data, sizeof(data))) > 0) length -= got;
}

/* A connection whose peer reads nothing, and which waits for that when it is closed. */
static void open_lingering(void) {
    struct linger linger = {.l_onoff = 1, .l_linger = 30};
    int other_port, other = listen_on_loopback(&other_port);
    lingering = connect_to(other_port);
    lingering_end = accept(other, NULL, NULL);
    CHECK(lingering_end >= 0 && close(other) == 0);
    set_blocking(lingering, false);
    while (write(lingering, lines, sizeof(lines)) > 0) continue;
    set_blocking(lingering, true);
    CHECK(setsockopt(lingering, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) == 0);
}
static char fifo[64];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static volatile bool is_done, is_under_way;

static void set_record(short kind, int command) {
    struct flock record = {.l_type = kind, .l_whence = SEEK_SET, .l_len = 1};
    CHECK(fcntl(file, command, &record) == 0);
}

static void hold(void) {
    if (is(what, "mutex") || is(what, "timed")) CHECK(pthread_mutex_lock(&mutex) == 0);
    if (is(what, "c-mutex")) CHECK(mtx_lock(&c_mutex) == thrd_success);
    if (is(what, "shared")) CHECK(pthread_rwlock_wrlock(&rwlock) == 0);
    if (is(what, "exclusive")) CHECK(pthread_rwlock_rdlock(&rwlock) == 0);
    if (is(what, "record")) set_record(F_WRLCK, F_SETLK);
    if (is(what, "spin")) CHECK(pthread_spin_lock(&spinlock) == 0);
    if (is(what, "locked-stream")) flockfile(output);
}

static void let_go(void) {
    if (is(what, "mutex") || is(what, "timed")) CHECK(pthread_mutex_unlock(&mutex) == 0);
    if (is(what, "c-mutex")) CHECK(mtx_unlock(&c_mutex) == thrd_success);
    if (is(what, "shared") || is(what, "exclusive")) CHECK(pthread_rwlock_unlock(&rwlock) == 0);
    if (is(what, "record")) set_record(F_UNLCK, F_SETLK);
    if (is(what, "event")) CHECK(eventfd_write(event, 1) == 0);
    if (is(what, "fifo")) CHECK(close(open(fifo, O_WRONLY)) == 0);
    if (is(what, "spin")) CHECK(pthread_spin_unlock(&spinlock) == 0);
    if (is(what, "locked-stream")) funlockfile(output);
    if (is(what, "lingering")) read_to_the_end(lingering_end, SSIZE_MAX);
    if (is_printed()) read_to_the_end(output_end, LINES * LINE);
    is_done = true;
    if (is(what, "system-call") || is(what, "line") || is(what, "block") || is(what, "character") || is(what, "unlocked-character") || is(what, "scan") || is(what, "splice")) CHECK(write(stream_end, "go on\n", 6) == 6);
}

static void until_done(void) {
    is_under_way = true;
    while (!is_done) usleep(100);
}

static void *run_once(void *argument) {
    CHECK(pthread_once(&once, until_done) == 0);
    return argument;
}

static int output_of_splice[2];

static void ask(void) {
    char line[16] = {0};
    eventfd_t count;
    struct timespec end;
    CHECK(clock_gettime(CLOCK_REALTIME, &end) == 0);
    end.tv_sec += 30;
    if (is(what, "mutex")) CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
    if (is(what, "timed")) CHECK(pthread_mutex_timedlock(&mutex, &end) == 0 && pthread_mutex_unlock(&mutex) == 0);
    if (is(what, "c-mutex")) CHECK(mtx_lock(&c_mutex) == thrd_success && mtx_unlock(&c_mutex) == thrd_success);
    if (is(what, "shared")) CHECK(pthread_rwlock_rdlock(&rwlock) == 0 && pthread_rwlock_unlock(&rwlock) == 0);
    if (is(what, "exclusive")) CHECK(pthread_rwlock_wrlock(&rwlock) == 0 && pthread_rwlock_unlock(&rwlock) == 0);
    if (is(what, "record")) set_record(F_WRLCK, F_SETLKW);
    if (is(what, "event")) CHECK(eventfd_read(event, &count) == 0);
    if (is(what, "fifo")) CHECK(close(open(fifo, O_RDONLY)) == 0);
    if (is(what, "once")) CHECK(pthread_once(&once, until_done) == 0);
    while (is(what, "yield") && !is_done) sched_yield();
    if (is(what, "system-call")) CHECK(syscall(SYS_read, fileno(stream), line, 6) == 6);
    if (is(what, "line")) CHECK(fgets(line, sizeof(line), stream) != NULL);
    if (is(what, "block")) CHECK(fread(line, 1, 6, stream) == 6);
    if (is(what, "character")) CHECK(getc(stream) == 'g');
    if (is(what, "unlocked-character")) CHECK(getc_unlocked(stream) == 'g');
    if (is(what, "scan")) {
        int standard = dup(0);
        CHECK(dup2(fileno(stream), 0) == 0 && scanf("%15s", line) == 1 && dup2(standard, 0) == 0);
    }
    if (is(what, "splice")) CHECK(splice(fileno(stream), NULL, output_of_splice[1], NULL, 6, 0) == 6);
    if (is(what, "spin")) CHECK(pthread_spin_lock(&spinlock) == 0 && pthread_spin_unlock(&spinlock) == 0);
    if (is(what, "locked-stream")) CHECK(fputs("x", output) >= 0);
    if (is(what, "lingering")) CHECK(close(lingering) == 0);
    if (is(what, "print")) for (int i = 0; i < LINES; i++) CHECK(fprintf(output, "%.*s", LINE, lines) == LINE);
    if (is(what, "print-text")) CHECK(fputs(lines, output) >= 0);
    if (is(what, "print-block")) CHECK(fwrite(lines, 1, LINES * LINE, output) == LINES * LINE);
    if (is(what, "print-descriptor")) for (int i = 0; i < LINES; i++) CHECK(dprintf(fileno(output), "%.*s", LINE, lines) == LINE);
    if (is_printed()) CHECK(fflush(output) == 0);
}

/* A visit; whether the server's answer came before what it waits for. */
static bool visit_while_holding(int until_held) {
    char answer[8];
    hold();
    CHECK(write(until_held, "x", 1) == 1);
    int fd = connect_to(port);
    SSL *ssl = SSL_new(client);
    CHECK(SSL_set_fd(ssl, fd) == 1);
    set_blocking(fd, false);
    struct pollfd answered = {.fd = fd, .events = POLLIN};
    bool progress = SSL_connect(ssl) == 1 || poll(&answered, 1, 20000) == 1;
    let_go();
    set_blocking(fd, true);
    CHECK(SSL_connect(ssl) == 1 && SSL_write(ssl, "ping", 4) == 4 && SSL_read(ssl, answer, 8) == 4);
    SSL_free(ssl);
    close(fd);
    return progress;
}

static int held[2];

static void *other(void *argument) {
    *(bool *)argument = visit_while_holding(held[1]);
    return NULL;
}

/* Record locks are a process's, so the other is one. */
static bool attend_a_process(void) {
    int status;
    char byte;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(!visit_while_holding(held[1]));
    CHECK(read(held[0], &byte, 1) == 1);
    CHECK(serve(ask));
    CHECK(waitpid(child, &status, 0) == child);
    return status == 0;
}

static bool attend_a_thread(void) {
    pthread_t thread;
    char byte;
    bool progress;
    pthread_t another;
    if (is(what, "once")) {
        CHECK(pthread_create(&another, NULL, run_once, NULL) == 0);
        while (!is_under_way) usleep(100);
    }
    CHECK(pthread_create(&thread, NULL, other, &progress) == 0);
    CHECK(read(held[0], &byte, 1) == 1);
    CHECK(serve(ask));
    CHECK(pthread_join(thread, NULL) == 0);
    if (is(what, "once")) CHECK(pthread_join(another, NULL) == 0);
    return progress;
}

int main(int argc, char **argv) {
    char name[] = "/tmp/hasten-waits-XXXXXX";
    int ends[2], output_ends[2];
    what = argc > 1 ? argv[1] : "";
    open_server("rsa-2048");
    client = client_context(0);
    CHECK(pipe(held) == 0 && pipe(ends) == 0 && mtx_init(&c_mutex, mtx_plain) == thrd_success);
    stream = fdopen(ends[0], "r");
    stream_end = ends[1];
    CHECK(pipe(output_ends) == 0 && pipe(output_of_splice) == 0 && pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE) == 0);
    output = fdopen(output_ends[1], "w");
    output_end = output_ends[0];
    CHECK(output != NULL);
    memset(lines, 'l', sizeof(lines) - 1);
    open_lingering();
    file = mkstemp(name);
    CHECK(stream != NULL && file >= 0 && unlink(name) == 0);
    event = eventfd(0, EFD_CLOEXEC);
    CHECK(event >= 0 && snprintf(fifo, sizeof(fifo), "%s.fifo", name) > 0 && mkfifo(fifo, 0600) == 0);
    for (int i = 0; i < 2; i++) serve_a_visitor(NULL);
    printf("progress %d\n", is(what, "record") ? attend_a_process() : attend_a_thread());
    CHECK(unlink(fifo) == 0);
    return finish();
}
