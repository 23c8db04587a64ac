"""asyncio: TLS in memory, beside an event loop that reads the sockets."""

import asyncio
import ssl
import sys


async def attend(reader, writer):
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello from the zoo\n")
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def main(port, chain, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    server = await asyncio.start_server(attend, "127.0.0.1", int(port), ssl=context, backlog=128)
    await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
