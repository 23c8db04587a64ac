/* Says whether its calls of OpenSSL lead to the library under test, which is so if that knows the OpenSSL that is there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

int SSL_accept(void *ssl);
int SSL_set_fd(void *ssl, int fd);

int main(int count, char **words)
{
    struct epoll_event event;
    Dl_info info;

    (void)words;
    /* What a server calls; nobody gives this one so many arguments. */
    if (count > 99)
        return SSL_set_fd(NULL, 0) + epoll_wait(0, &event, 1, 0);
    if (!dladdr((void *)SSL_accept, &info))
        return 1;
    return puts(strstr(info.dli_fname, "libhasten_tls.so") ? "hooked" : "plain") < 0;
}
