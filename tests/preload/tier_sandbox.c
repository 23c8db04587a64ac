// Ends at once if anything changes the rights of memory, or binds it, after it has forbidden itself to.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void fill(size_t size, int count) {
    for (int i = 0; i < count; i++) {
        char *object = malloc(size);
        if (!object) exit(3);
        memset(object, i, size);
    }
}

#define FORBID(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

int main(void) {
    // Long enough for the library to look at what there is.
    for (int i = 0; i < 60; i++) {
        fill(3000, 100);
        usleep(2000);
    }
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        FORBID(SYS_mprotect), FORBID(SYS_mbind), FORBID(SYS_move_pages), FORBID(SYS_rt_sigprocmask),
        FORBID(SYS_sigaltstack), FORBID(SYS_memfd_create),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 4;
    fill(3000, 20000);
    fill(200000, 100);
    puts("all as it was");
    puts("end");
    fflush(stdout);
    return getchar() == EOF ? 0 : 1;
}
