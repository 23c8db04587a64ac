/* A program that has nothing to do with OpenSSL: pipes, epoll, children, and a clean end. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv, char **envp) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x0123456789abcdef}, events[4];
    int pipes[2], pair[2], status, epfd = epoll_create(1);
    char byte = 'x', data[4];
    if (argc > 1) return strlen(argv[1]) == 3 ? 7 : 8;
    if (pipe(pipes) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
    printf("add %d\n", epoll_ctl(epfd, EPOLL_CTL_ADD, pipes[0], &event));
    printf("again %d %d\n", epoll_ctl(epfd, EPOLL_CTL_ADD, pipes[0], &event), errno);
    printf("nothing %d\n", epoll_wait(epfd, events, 4, 1));
    printf("write %zd\n", write(pipes[1], &byte, 1));
    printf("event %d\n", epoll_wait(epfd, events, 4, -1));
    printf("%x %llx\n", events[0].events, (unsigned long long)events[0].data.u64);
    printf("none %d %d\n", epoll_wait(epfd, events, 0, 0), errno);
    printf("send %zd\n", send(pair[0], "abc", 3, 0));
    printf("recv %zd\n", recv(pair[1], data, 4, 0));
    printf("dup2 %d\n", dup2(pipes[1], pair[0]) == pair[0]);
    printf("close %d\n", close(pipes[0]));
    printf("again %d\n", close(pipes[0]));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char *arguments[] = {argv[0], "abc", NULL};
        execve("/proc/self/exe", arguments, envp);
        _exit(9);
    }
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
    puts("end");
    fflush(stdout);
    while (read(0, data, 1) > 0) {
    }
    return 0;
}
