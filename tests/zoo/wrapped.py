"""Asks a server in socket_wrapper's network, again and again in threads, and prints what came back how often."""

import collections
import socket
import ssl
import sys
import threading
import time

PATIENCE = 60
port, threads, visits = map(int, sys.argv[1:])
results = collections.Counter()


def context(is_old):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.minimum_version = made.maximum_version = ssl.TLSVersion.TLSv1_2 if is_old else ssl.TLSVersion.TLSv1_3
    return made


CONTEXTS = [context(False), context(True)]


def visit(number):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as plain:
            with CONTEXTS[number % 2].wrap_socket(plain) as tls:
                tls.sendall(b"GET /hello.txt HTTP/1.0\r\nHost: localhost\r\n\r\n")
                answer = b"".join(iter(lambda: tls.recv(4096), b""))
                return tls.version() if answer.endswith(b"hello from the zoo\n") else repr(answer)
    except OSError as error:
        return str(error)


def client():
    for number in range(visits):
        result = visit(number)
        with lock:
            results[result] += 1


# It may not listen yet.
begin = time.monotonic()
while "TLS" not in visit(0) and time.monotonic() < begin + PATIENCE:
    time.sleep(0.1)
lock = threading.Lock()
clients = [threading.Thread(target=client) for _ in range(threads)]
for thread in clients:
    thread.start()
for thread in clients:
    thread.join()
print(sorted(results.items()))
