// What a program finds at its start: errno, the last error of dlopen, and hasten's libraries.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#ifdef WITH_DLERROR
#include <dlfcn.h>
#endif
#ifdef WITH_LIBRARIES
#include <link.h>
#include <string.h>

static int print(struct dl_phdr_info *object, size_t size, void *unused) {
    const char *name = strstr(object->dlpi_name, "/hasten/");
    (void)size, (void)unused;
    if (name) puts(name + strlen("/hasten/"));
    return 0;
}
#endif

int main(void) {
    printf("errno %d\n", errno);
#ifdef WITH_DLERROR
    const char *error = dlerror();
    printf("dlerror %s\n", error ? error : "none");
#endif
#ifdef WITH_LIBRARIES
    dl_iterate_phdr(print, NULL);
#endif
    return 3;
}
