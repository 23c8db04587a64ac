/* A server that loads a library with OpenSSL's names, which binds to its own functions first (RTLD_DEEPBIND). */
#include "serve.h"

#include <dlfcn.h>

int main(int argc, char **argv) {
    CHECK(argc == 2);
    open_server("p-256");
    serve_a_visitor(NULL);
    void *lookalike = dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
    CHECK(lookalike != NULL);
    int (*own)(void) = (int (*)(void))dlsym(lookalike, "own_handshake");
    CHECK(own != NULL);
    printf("its own: %d\n", own());
    serve_a_visitor(NULL);
    printf("and again: %d\n", own());
    return finish();
}
