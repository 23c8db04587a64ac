"""A server in Python with clients in a child; what it prints must not depend on whether it is accelerated."""

import asyncio
import os
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

CLIENTS, VISITS = 4, 6


def certificate(directory):
    """A certificate and its key, made by OpenSSL's own program."""
    pair = os.path.join(directory, "certificate.pem"), os.path.join(directory, "key.pem")
    request = ["req", "-x509", "-newkey", "rsa:2048", "-noenc", "-subj", "/CN=localhost", "-days", "1"]
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = ["openssl", *request, "-out", pair[0], "-keyout", pair[1]]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, env=environment)
    return pair


def visit(port):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for _ in range(VISITS):
        with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(plain) as secure:
            secure.sendall(b"ping")
            if secure.recv(4) != b"pong":
                os._exit(1)


def send_clients(port):
    child = os.fork()
    if child == 0:
        threads = [threading.Thread(target=visit, args=(port,)) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os._exit(0)
    return child


class Loop:
    """Non-blocking sockets and epoll: each connection is a generator that says what it waits for."""

    def __init__(self, listener, context):
        self.context, self.selector, self.served = context, selectors.EpollSelector(), 0
        self.names = []
        context.sni_callback = lambda secure, name, _: self.names.append(name)
        listener.setblocking(False)
        self.selector.register(listener, selectors.EVENT_READ, self.welcome)
        while self.served < CLIENTS * VISITS:
            for key, _ in self.selector.select(20):
                key.data(key.fileobj)

    def welcome(self, listener):
        plain, _ = listener.accept()
        plain.setblocking(False)
        secure = self.context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        steps = self.attend(secure)
        self.selector.register(secure, selectors.EVENT_READ)
        self.advance(secure, steps)

    def advance(self, secure, steps):
        try:
            self.selector.modify(secure, next(steps), lambda _: self.advance(secure, steps))
        except StopIteration:
            self.selector.unregister(secure)
            secure.close()
            self.served += 1

    @staticmethod
    def attend(secure):
        for action in (secure.do_handshake, lambda: secure.recv(4), lambda: secure.send(b"pong")):
            while True:
                try:
                    action()
                    break
                except ssl.SSLWantReadError:
                    yield selectors.EVENT_READ
                except ssl.SSLWantWriteError:
                    yield selectors.EVENT_WRITE


def serve_threads(listener, context):
    def attend(plain):
        with context.wrap_socket(plain, server_side=True) as secure:
            secure.recv(4)
            secure.sendall(b"pong")

    threads = []
    for _ in range(CLIENTS * VISITS):
        threads.append(threading.Thread(target=attend, args=(listener.accept()[0],)))
        threads[-1].start()
    for thread in threads:
        thread.join()


async def serve_asyncio(listener, context):
    served, done = 0, asyncio.Event()

    async def attend(reader, writer):
        nonlocal served
        await reader.readexactly(4)
        writer.write(b"pong")
        await writer.drain()
        writer.close()
        served += 1
        if served == CLIENTS * VISITS:
            done.set()

    async with await asyncio.start_server(attend, sock=listener, ssl=context):
        await done.wait()


def main():
    signal.alarm(100)
    with tempfile.TemporaryDirectory() as directory:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate(directory))
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    child = send_clients(listener.getsockname()[1])
    if sys.argv[1] == "selectors":
        Loop(listener, context)
    elif sys.argv[1] == "threads":
        serve_threads(listener, context)
    else:
        asyncio.run(serve_asyncio(listener, context))
    print("clients", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print("end", flush=True)
    sys.stdin.read()


main()
