"""The standard library's own server: a thread for each connection, which shakes hands when it first reads."""

import http.server
import ssl
import sys

port, chain, key = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(chain, key)


class Server(http.server.ThreadingHTTPServer):
    def get_request(self):
        plain, address = self.socket.accept()
        secure = context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        return secure, address


Server.request_queue_size = 128
Server(("127.0.0.1", int(port)), http.server.SimpleHTTPRequestHandler).serve_forever()
