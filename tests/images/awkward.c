// Programs that others have broken by preloading a library into them.
#define _GNU_SOURCE
#if defined(ABORTS)
#include <stdlib.h>
#include <unistd.h>

// Ends before main, as a program that finds itself misconfigured.
__attribute__((constructor)) static void end(void) {
    if (write(1, "before main\n", 12) == 12) abort();
}

int main(void) { return 1; }
#elif defined(COPIES)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Linked without -fPIE, these are copied from the C library into the program, and the library uses the copy.
int main(int count, char **arguments) {
    if (setenv("HERE", "1", 1) != 0) return 1;
    int seen = 0;
    for (char **variable = environ; *variable; variable++) seen |= strcmp(*variable, "HERE=1") == 0;
    if (getopt(count, arguments, "") != -1) return 2;
    fprintf(stdout, "environ %d optind %d\n", seen, optind);
    return fflush(stdout) == 0 ? 3 : 4;
}
#elif defined(SMALL)
// For a processor of 32 bits: exit(3), without a library.
void _start(void) { __asm__ volatile("int $0x80" ::"a"(1), "b"(3)); }
#endif
