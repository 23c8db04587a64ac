// What a program finds at its start: errno, and the last error of dlopen.
#include <errno.h>
#include <stdio.h>
#ifdef WITH_DLERROR
#include <dlfcn.h>
#endif

int main(void) {
    printf("errno %d\n", errno);
#ifdef WITH_DLERROR
    const char *error = dlerror();
    printf("dlerror %s\n", error ? error : "none");
#endif
    return 3;
}
