// Files that change in every way while they are read in every way. Each read is compared with what the file must hold.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 300 * 1024 + 123, RECORD = 1000, RECORDS = 700 };

static char *model, *buffer;
static uint64_t state = 88172645463325252;

static void fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    printf(" (errno %d)\nend\n", errno);
    exit(1);
}

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void must(int is_true, const char *what) {
    if (!is_true) fail("%s", what);
}

static void fill(char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) bytes[i] = (char)next();
}

static void make(const char *name, const char *bytes, size_t size) {
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && fsync(fd) == 0 && close(fd) == 0, name);
}

static int opened(const char *name, int flags) {
    int fd = open(name, O_RDONLY | flags);
    must(fd >= 0, name);
    return fd;
}

// Long enough for a change to be an old one.
static void settle(void) { sleep(4); }

static ssize_t get(int fd, size_t count, off_t offset, int way) {
    struct iovec one = {buffer, count}, two[2] = {{buffer, count / 2}, {buffer + count / 2, count - count / 2}};
    switch (way) {
    case 0: return pread(fd, buffer, count, offset);
    case 1: return preadv(fd, &one, 1, offset);
    case 2: return preadv(fd, two, 2, offset);
    case 3: return preadv2(fd, &one, 1, offset, 0);
    default: must(lseek(fd, offset, SEEK_SET) == offset, "lseek"); return read(fd, buffer, count);
    }
}

static void check(int fd, size_t size, size_t count, off_t offset, int way, const char *what) {
    ssize_t expected = (size_t)offset >= size ? 0 : (ssize_t)(size - offset < count ? size - offset : count);
    memset(buffer, 0x77, count);
    ssize_t got = get(fd, count, offset, way);
    if (got != expected) fail("%s: %zd of %zd bytes at %ld, way %d", what, got, expected, (long)offset, way);
    if (memcmp(buffer, model + offset, got) != 0) fail("%s: wrong bytes at %ld, way %d", what, (long)offset, way);
    if (way > 3) must(lseek(fd, 0, SEEK_CUR) == offset + got, "position");
}

static void check_any(int fd, size_t size, int is_direct, int times, const char *what) {
    for (int i = 0; i < times; i++) {
        size_t count = 1 + next() % (next() % 8 ? 9000 : 100000);
        off_t offset = next() % (size + 5000);
        if (is_direct) {
            count = (count + 511) / 512 * 512;
            offset = offset / 512 * 512;
        }
        int way = next() % 5;
        check(fd, size, count, offset, is_direct && way == 2 ? 0 : way, what);
    }
}

static void reads(void) {
    make("a.sst", model, SIZE);
    make("plain", model, SIZE);
    settle();
    for (int round = 0; round < 3; round++) {
        int fd = opened("a.sst", 0), direct = opened("a.sst", O_DIRECT), plain = opened("plain", 0);
        must(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
        check_any(fd, SIZE, 0, 300, "buffered");
        check_any(direct, SIZE, 1, 300, "direct");
        check_any(plain, SIZE, 0, 50, "another");
        int other = dup(fd);
        close(fd);
        check_any(other, SIZE, 0, 50, "duplicate");
        pid_t child = fork();
        if (child == 0) {
            check_any(direct, SIZE, 1, 100, "child");
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) == child && status == 0, "child");
        close(other), close(direct), close(plain);
    }
    printf("reads are right\n");
}

static void writes(void) {
    int fd = opened("a.sst", 0), direct = opened("a.sst", O_DIRECT), out = open("a.sst", O_WRONLY);
    for (int i = 0; i < 400; i++) {
        off_t at = next() % SIZE;
        model[at]++;
        must(pwrite(out, model + at, 1, at) == 1, "pwrite");
        check(fd, SIZE, 100, at / 100 * 100, i % 5, "after a write");
        check(direct, SIZE, 4096, at / 4096 * 4096, 0, "after a write, direct");
        check_any(direct, SIZE, 1, 3, "after a write, direct");
    }
    close(out);
    settle();
    for (int round = 0; round < 2; round++) check_any(direct, SIZE, 1, 200, "a while after writes");
    must(truncate("a.sst", 5000) == 0 && truncate("a.sst", SIZE) == 0, "truncate");
    memset(model + 5000, 0, SIZE - 5000);
    check_any(direct, SIZE, 1, 200, "after truncation");
    close(fd), close(direct);
    printf("writes are seen\n");
}

// Many changes within one tick of the clock, none by a writer that is still there.
static void bursts(void) {
    make("e.sst", model, SIZE);
    int fd = opened("e.sst", O_DIRECT);
    for (int i = 0; i < 3000; i++) {
        int out = open("e.sst", O_WRONLY);
        model[0]++;
        must(out >= 0 && pwrite(out, model, 1, 0) == 1 && close(out) == 0, "pwrite");
        for (int again = 0; again < 2; again++) check(fd, SIZE, 4096, 0, 0, "in a burst");
    }
    close(fd);
    printf("bursts are seen\n");
}

// A write that has set the time and waits for its data: reads before and after it happen under one time.
static void *writer(void *source) {
    int out = open("f.sst", O_WRONLY);
    must(out >= 0 && pwrite(out, source, 4096, 0) == 4096 && close(out) == 0, "a late write");
    return NULL;
}

static void late(void) {
    make("f.sst", model, SIZE);
    int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    char *source = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {{(uintptr_t)source, 4096}, UFFDIO_REGISTER_MODE_MISSING, 0};
    // Not everyone may hold up the kernel.
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0 || ioctl(faults, UFFDIO_REGISTER, &range) != 0) return;
    pthread_t thread;
    must(pthread_create(&thread, NULL, writer, source) == 0, "thread");
    struct uffd_msg message;
    must(read(faults, &message, sizeof message) == sizeof message, "a fault");
    settle();
    int fd = opened("f.sst", 0);
    for (int i = 0; i < 2; i++) {
        must(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
        check(fd, SIZE, 8192, 0, 0, "during a write");
    }
    fill(model, 4096);
    struct uffdio_copy copy = {.dst = (uintptr_t)source, .src = (uintptr_t)model, .len = 4096};
    must(ioctl(faults, UFFDIO_COPY, &copy) == 0 && pthread_join(thread, NULL) == 0, "the rest of a write");
    must(fdatasync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
    check(fd, SIZE, 8192, 0, 0, "after a late write");
    close(fd), close(faults);
}

static void renames(void) {
    fill(model, SIZE);
    make("b.sst", model, SIZE);
    settle();
    int old = opened("b.sst", O_DIRECT);
    for (int round = 0; round < 2; round++) check_any(old, SIZE, 1, 100, "before a rename");
    char *before = malloc(SIZE);
    must(before != NULL, "malloc");
    memcpy(before, model, SIZE);
    fill(model, SIZE);
    make("new", model, SIZE);
    must(rename("new", "b.sst") == 0, "rename");
    int fresh = opened("b.sst", O_DIRECT);
    check_any(fresh, SIZE, 1, 100, "after a rename");
    memcpy(model, before, SIZE);
    check_any(old, SIZE, 1, 100, "the file before a rename");
    close(old), close(fresh), free(before);
    printf("renames are seen\n");
}

// A page that is mapped and dirty changes without a trace.
static void maps(void) {
    fill(model, SIZE);
    make("c.sst", model, SIZE);
    int out = open("c.sst", O_RDWR);
    char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0);
    must(map != MAP_FAILED, "mmap");
    close(out);
    for (off_t at = 0; at < SIZE; at += 4096) map[at] = ++model[at];
    settle();
    int fd = opened("c.sst", 0);
    for (int round = 0; round < 2; round++) {
        must(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
        check_any(fd, SIZE, 0, 100, "while mapped");
        for (off_t at = 0; at < SIZE; at += 4096) map[at] = ++model[at];
        check_any(fd, SIZE, 0, 100, "after a store");
    }
    munmap(map, SIZE);
    check_any(fd, SIZE, 0, 100, "after the mapping");
    close(fd);
    printf("stores are seen\n");
}

static int shared_fd;
static unsigned char seen[RECORDS];

static void *reader(void *unused) {
    char record[RECORD];
    ssize_t got;
    while ((got = read(shared_fd, record, RECORD)) > 0) {
        int number;
        memcpy(&number, record, sizeof number);
        must(got == RECORD && number >= 0 && number < RECORDS, "a record");
        __atomic_add_fetch(&seen[number], 1, __ATOMIC_RELAXED);
    }
    must(got == 0, "the end");
    return unused;
}

static void shares(void) {
    static char records[RECORDS][RECORD];
    for (int i = 0; i < RECORDS; i++) memcpy(records[i], &i, sizeof i);
    make("d.sst", records[0], sizeof records);
    settle();
    for (int round = 0; round < 4; round++) {
        memset(seen, 0, sizeof seen);
        shared_fd = opened("d.sst", 0);
        must(posix_fadvise(shared_fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) must(pthread_create(&threads[i], NULL, reader, NULL) == 0, "thread");
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < RECORDS; i++)
            if (seen[i] != 1) fail("record %d was read %d times", i, seen[i]);
        close(shared_fd);
    }
    printf("each record is read once\n");
}

// A program that closes whatever may be open, and uses the numbers again.
static void closes(void) {
    char page[4096], again[4096];
    int direct = opened("b.sst", O_DIRECT);
    must(pread(direct, buffer, 4096, 0) == 4096, "pread");
    memset(page, 0x11, sizeof page);
    make("precious", page, sizeof page);
    int mine = open("precious", O_RDWR);
    for (int fd = 20; fd < 1024; fd++) close(fd);
    for (int fd = 900; fd < 960; fd++) must(dup2(mine, fd) == fd, "dup2");
    for (int at = 0; at < 64; at++) must(pread(direct, buffer, 4096, at * 4096) == 4096, "pread");
    must(pread(mine, again, sizeof again, 0) == sizeof again && memcmp(page, again, sizeof page) == 0, "precious");
    struct stat facts;
    must(fstat(mine, &facts) == 0 && facts.st_size == sizeof page, "its size");
    for (int fd = 900; fd < 960; fd++) {
        int result = close(fd);
        must(result == 0 && fcntl(fd, F_GETFD) < 0, "a descriptor of the program's is closed");
    }
    printf("nothing of the program's is touched\n");
}

// Threads and signal handlers may have little stack.
static int narrow_fd;
static char narrow_page[4096] __attribute__((aligned(4096)));

static void *narrow(void *unused) {
    for (int block = 0; block < 64; block++) {
        must(pread(narrow_fd, narrow_page, 4096, block * 4096) == 4096, "a narrow read");
        must(memcmp(narrow_page, model + block * 4096, 4096) == 0, "a narrow read's bytes");
    }
    return unused;
}

static void on_signal(int number) {
    (void)number;
    if (pread(narrow_fd, narrow_page, 4096, 8192) != 4096) _exit(1);
}

static void stacks(void) {
    make("g.sst", model, SIZE);
    settle();
    narrow_fd = opened("g.sst", O_DIRECT);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    must(pthread_attr_setstacksize(&attributes, 16384) == 0, "a small stack");
    for (int round = 0; round < 2; round++) {
        must(pthread_create(&thread, &attributes, narrow, NULL) == 0 && pthread_join(thread, NULL) == 0, "thread");
    }
    static char small[8192];
    stack_t stack = {.ss_sp = small, .ss_size = sizeof small};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    must(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0, "a handler");
    raise(SIGUSR1);
    must(memcmp(narrow_page, model + 8192, 4096) == 0, "a handler's bytes");
    close(narrow_fd);
    printf("small stacks are enough\n");
}

// A number that is a file's of another kind, or reads in another way, by now.
static void numbers(void) {
    int fd = opened("g.sst", 0), direct = opened("g.sst", O_DIRECT);
    must(pread(direct, buffer, 8192, 0) == 8192 && pread(direct, buffer, 8192, 0) == 8192, "pread");
    int out = open("g.sst", O_WRONLY), path = open("g.sst", O_PATH);
    must(dup2(out, fd) == fd, "dup2");
    errno = 0;
    ssize_t got = pread(fd, buffer, 8192, 0);
    printf("for writing: %zd, errno %d\n", got, errno);
    must(dup2(path, fd) == fd, "dup2");
    errno = 0;
    got = pread(fd, buffer, 8192, 0);
    printf("a path: %zd, errno %d\n", got, errno);
    must(fcntl(direct, F_SETFL, 0) == 0, "fcntl");
    got = pread(direct, buffer + 1, 100, 1);
    must(got == 100 && memcmp(buffer + 1, model + 1, 100) == 0, "no longer direct");
    must(fcntl(direct, F_SETFL, O_DIRECT) == 0, "fcntl");
    errno = 0;
    got = pread(direct, buffer + 1, 100, 1);
    printf("direct again: %zd, errno %d\n", got, errno);
    close(fd), close(direct), close(out), close(path);
}

static void errors(void) {
    int fd = opened("b.sst", 0), direct = opened("b.sst", O_DIRECT);
    const char *hint[] = {"offset", "memory", "descriptor", "alignment", "directory"};
    int directory = opened(".", O_DIRECTORY);
    ssize_t got[5];
    int error[5];
#define TRY(i, call) errno = 0, got[i] = call, error[i] = errno
    TRY(0, pread(fd, buffer, 10, -1));
    TRY(1, pread(direct, (void *)4096, 4096, 0));
    close(fd);
    TRY(2, pread(fd, buffer, 10, 0));
    TRY(3, pread(direct, buffer + 1, 4096, 0));
    TRY(4, pread(directory, buffer, 10, 0));
    for (int i = 0; i < 5; i++) printf("%s: %zd, errno %d\n", hint[i], got[i], error[i]);
    errno = 77;
    must(pread(direct, buffer, 4096, 0) == 4096 && errno == 77, "errno is left alone");
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    must(argc == 2 && chdir(argv[1]) == 0, "a directory is needed");
    must(posix_memalign((void **)&model, 4096, SIZE + 4096) == 0, "memory");
    must(posix_memalign((void **)&buffer, 4096, 200000) == 0, "memory");
    fill(model, SIZE);
    reads(), writes(), bursts(), late(), renames(), maps(), shares(), closes(), stacks(), numbers(), errors();
    printf("end\n");
    return getchar() == EOF ? 0 : 1;
}
