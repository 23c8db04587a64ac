// The half of exceptions.c that has to be C++.
#include <openssl/ssl.h>
#include <stdexcept>

extern "C" void perhaps_throw(int connection) {
    if (connection % 3 == 2) throw std::runtime_error("not today");
}

extern "C" int handshake_or_catch(SSL *ssl) {
    try {
        return SSL_do_handshake(ssl);
    } catch (const std::runtime_error &) {
        return 2;
    }
}
