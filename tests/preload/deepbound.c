/* A server that loads a library with OpenSSL's names, which binds to its own functions first (RTLD_DEEPBIND). */
#include "serve.h"

#include <dlfcn.h>

int main(int argc, char **argv) {
    CHECK(argc == 2);
    open_server("p-256");
    serve_a_visitor(NULL);
    void *lookalike = dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
    CHECK(lookalike != NULL);
    int (*accept)(const int *) = (int (*)(const int *))dlsym(lookalike, "lookalike_accept");
    CHECK(accept != NULL);
    int ssl = 42;
    printf("its own: %d\n", accept(&ssl));
    serve_a_visitor(NULL);
    return finish();
}
