"""One TLS connection with Python's ssl: prints protocol, cipher suite and the last line of the answer."""
import socket
import ssl
import sys

address, root, version = sys.argv[1:]
host, port = address.split(":")
context = ssl.create_default_context(cafile=root)
context.minimum_version = context.maximum_version = ssl.TLSVersion["TLSv" + version.replace(".", "_")]
with socket.create_connection((host, int(port))) as plain:
    with context.wrap_socket(plain, server_hostname="localhost") as tls:
        tls.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b""
        while data := tls.recv(4096):
            answer += data
        print(tls.version(), tls.cipher()[0], answer.decode().strip().splitlines()[-1])
