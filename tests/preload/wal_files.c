// A program that treats a log in every way in which it can treat a file, and says what it sees.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *what, long result) {
    int error = errno;
    printf("%s: %ld%s%s\n", what, result, result < 0 ? ", " : "", result < 0 ? strerror(error) : "");
}

static int put(const char *name, int flags, const char *text) {
    int fd = open(name, O_WRONLY | O_CREAT | flags, 0640);
    if (fd < 0) return fd;
    long size = (long)strlen(text);
    if (write(fd, text, size) != size || fdatasync(fd) != 0) say("write", -1);
    close(fd);
    return 0;
}

static void show(const char *name) {
    struct stat facts, followed, at;
    struct statx more;
    char text[100] = "";
    errno = 0;
    int got = lstat(name, &facts), fd = open(name, O_RDONLY | O_NOFOLLOW);
    if (got != 0 || fd < 0) {
        say(name, -1);
        return;
    }
    int is_same = stat(name, &followed) == 0 && fstatat(AT_FDCWD, name, &at, AT_SYMLINK_NOFOLLOW) == 0 &&
                  statx(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &more) == 0 &&
                  followed.st_ino == facts.st_ino && at.st_ino == facts.st_ino && more.stx_ino == facts.st_ino;
    long size = read(fd, text, sizeof text - 1);
    close(fd);
    printf("%s: mode %o, links %lu, size %ld, same %d, %ld bytes: %s\n", name, facts.st_mode, (unsigned long)facts.st_nlink,
           (long)facts.st_size, is_same, size, text);
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static void list(void) {
    // Sorted here, because a file system may list in any order.
    struct dirent *entries[64];
    int count = 0;
    DIR *directory = opendir(".");
    for (struct dirent *entry; (entry = readdir(directory)) != NULL && count < 64;) {
        entries[count] = malloc(sizeof *entry);
        memcpy(entries[count++], entry, entry->d_reclen);
    }
    closedir(directory);
    qsort(entries, count, sizeof *entries, (int (*)(const void *, const void *))by_name);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') printf("  %s (%d)\n", entries[i]->d_name, entries[i]->d_type);
        free(entries[i]);
    }
}

int main(int argc, char **argv) {
    umask(022);
    if (argc != 2 || chdir(argv[1]) != 0) return 1;
    say("lock", put("LOCK", 0, ""));
    say("make", put("000001.log", O_TRUNC, "first"));
    show("000001.log");
    say("exclusive", put("000001.log", O_EXCL, "no"));
    say("append", put("000001.log", O_APPEND, " and more"));
    show("000001.log");
    say("truncate", truncate("000001.log", 7));
    show("000001.log");
    say("exclusive and new", put("000002.log", O_EXCL, "second"));
    say("rename", rename("000001.log", "000003.log"));
    show("000001.log"), show("000003.log");
    say("rename over", rename("000002.log", "000003.log"));
    show("000003.log");
    say("rename to itself", rename("000003.log", "000003.log"));
    show("000003.log");
    say("link", link("000003.log", "copy"));
    show("copy"), show("000003.log");
    say("link again", link("000003.log", "copy"));
    say("unlink", unlink("000003.log"));
    show("000003.log"), show("copy");
    say("plain over", put("plain", O_TRUNC, "plain"));
    say("rename plain over", rename("plain", "copy"));
    show("copy");
    int fd = open("000004.log", O_RDWR | O_CREAT, 0600);
    say("write", write(fd, "kept", 4));
    say("remove while open", remove("000004.log"));
    char text[5] = "";
    say("read", pread(fd, text, 4, 0));
    printf("%s\n", text);
    close(fd);
    show("000004.log");
    // A link is not seen in any other way.
    say("make", put("000007.log", 0, "seventh"));
    char target[100];
    say("readlink", readlink("000007.log", target, sizeof target));
    say("readlinkat", readlinkat(AT_FDCWD, "000007.log", target, sizeof target));
    struct timespec times[2] = {{1000, 0}, {2000, 0}};
    say("times", utimensat(AT_FDCWD, "000007.log", times, AT_SYMLINK_NOFOLLOW));
    say("owner", lchown("000007.log", getuid(), getgid()));
    say("owner at", fchownat(AT_FDCWD, "000007.log", getuid(), -1, AT_SYMLINK_NOFOLLOW));
    struct stat seventh;
    say("modified", stat("000007.log", &seventh) == 0 ? (long)seventh.st_mtime : -1);
    DIR *here = opendir(".");
    for (struct dirent *entry; (entry = readdir(here)) != NULL;)
        if (strcmp(entry->d_name, "000007.log") == 0) say("same inode", entry->d_ino == seventh.st_ino);
    closedir(here);
    say("close", close(creat("000008.log", 0600)));
    show("000008.log");
    say("unlink", unlink("000007.log")), say("unlink", unlink("000008.log"));
    // A directory that hands down its group.
    say("directory", mkdir("group", 0700) == 0 && chown("group", -1, 12345) == 0 && chmod("group", 02700) == 0);
    say("lock", put("group/LOCK", 0, "")), say("make", put("group/000001.log", 0, "of a group"));
    say("group", stat("group/000001.log", &seventh) == 0 ? (long)seventh.st_gid : -1);
    say("unlink", unlink("group/000001.log")), say("unlink", unlink("group/LOCK")), say("rmdir", rmdir("group"));
    // Two processes append to one log.
    say("make", put("000005.log", O_TRUNC, ""));
    if (fork() == 0) {
        int child = open("000005.log", O_WRONLY | O_APPEND);
        for (int i = 0; i < 100; i++)
            if (write(child, "child.", 6) != 6) _exit(1);
        _exit(0);
    }
    fd = open("000005.log", O_WRONLY | O_APPEND);
    for (int i = 0; i < 100; i++)
        if (write(fd, "parent", 6) != 6) return 1;
    int status;
    say("child", wait(&status) > 0 ? status : -1);
    struct stat facts;
    say("size", fstat(fd, &facts) == 0 ? facts.st_size : -1);
    close(fd);
    say("openat", openat(AT_FDCWD, "none/000006.log", O_CREAT | O_WRONLY, 0600));
    say("not a log", put("12.log", O_TRUNC, "no log"));
    say("link by hand", symlink("12.log", "mine"));
    say("its mode", lstat("mine", &facts) == 0 ? (long)(facts.st_mode & S_IFMT) : -1);
    list();
    for (const char *names[] = {"000005.log", "copy", "mine", "12.log", "LOCK"}, **name = names; name < names + 5; name++)
        say(*name, unlinkat(AT_FDCWD, *name, 0));
    list();
    printf("end\n");
    fflush(stdout);
    return getchar() == EOF ? 0 : 1;
}
