"""Tornado with a handler that starts programs: CPython does so by vfork, and closes what it does not pass on."""

import ssl
import subprocess
import sys

import tornado.httpserver
import tornado.ioloop
import tornado.web


class Hello(tornado.web.RequestHandler):
    count = 0

    def get(self):
        Hello.count += 1
        if Hello.count % 4 == 0:
            subprocess.run(["/bin/true"], check=True, close_fds=True)
        self.write("hello from the zoo\n")


port, chain, key = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(chain, key)
application = tornado.web.Application([("/hello.txt", Hello)])
tornado.httpserver.HTTPServer(application, ssl_options=context).listen(int(port), "127.0.0.1")
tornado.ioloop.IOLoop.current().start()
