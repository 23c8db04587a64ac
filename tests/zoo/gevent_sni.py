"""gevent, whose greenlets share the thread's stack, with an SNI callback that lets others run in the middle of its handshake."""
import sys

import gevent
from gevent import ssl
from gevent.server import StreamServer

port, chain, key = sys.argv[1:]


def wait(_socket, _name, _context):
    gevent.sleep(0.001)


def serve(connection, _address):
    try:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nhello from the zoo\n")
        connection.unwrap()
    except OSError:
        pass
    finally:
        connection.close()


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(chain, key)
context.sni_callback = wait
StreamServer(("127.0.0.1", int(port)), serve, backlog=256, ssl_context=context).serve_forever()
