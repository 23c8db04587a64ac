// What Rust's standard library and our own code call, and glibc 2.17 does not have. Newer ones must not be asked for it
// either: a version that the loader does not find keeps a program from starting, even where the function is never called.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// On x86-64 the kernel's `struct stat` is glibc's, with and without the 64.
int stat(const char *path, struct stat *found) { return syscall(SYS_stat, path, found); }
int stat64(const char *path, struct stat64 *found) { return syscall(SYS_stat, path, found); }
int lstat64(const char *path, struct stat64 *found) { return syscall(SYS_lstat, path, found); }
int fstat64(int descriptor, struct stat64 *found) { return syscall(SYS_fstat, descriptor, found); }
int fstat(int descriptor, struct stat *found) { return syscall(SYS_fstat, descriptor, found); }

int memfd_create(const char *name, unsigned int flags) { return syscall(SYS_memfd_create, name, flags); }

pid_t gettid(void) { return syscall(SYS_gettid); }
