// What Rust's standard library and our own code call, and glibc 2.17 does not have. Newer ones must not be asked for it
// either: a version that the loader does not find keeps a program from starting, even where the function is never called.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// On x86-64 and arm64 the kernel's `struct stat` is glibc's, with and without the 64. A kernel for arm64 finds files only by
// the call that takes a folder, too.
int stat(const char *path, struct stat *found) { return syscall(SYS_newfstatat, AT_FDCWD, path, found, 0); }
int stat64(const char *path, struct stat64 *found) { return syscall(SYS_newfstatat, AT_FDCWD, path, found, 0); }
int lstat64(const char *path, struct stat64 *found) { return syscall(SYS_newfstatat, AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW); }
int fstat64(int descriptor, struct stat64 *found) { return syscall(SYS_fstat, descriptor, found); }
int fstat(int descriptor, struct stat *found) { return syscall(SYS_fstat, descriptor, found); }

int memfd_create(const char *name, unsigned int flags) { return syscall(SYS_memfd_create, name, flags); }

pid_t gettid(void) { return syscall(SYS_gettid); }
