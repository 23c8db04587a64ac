"""Three copies of OpenSSL in one process: the distribution's in `ssl`, and one in each of two wheels. Prints who succeeds."""

import io
import ssl
import sys

import psycopg2
import pycurl

web, database = sys.argv[1:]


def curl():
    body, handle = io.BytesIO(), pycurl.Curl()
    handle.setopt(pycurl.URL, f"https://127.0.0.1:{web}/hello.txt")
    handle.setopt(pycurl.SSL_VERIFYPEER, 0)
    handle.setopt(pycurl.SSL_VERIFYHOST, 0)
    handle.setopt(pycurl.WRITEDATA, body)
    handle.perform()
    return body.getvalue()


def postgresql():
    connection = psycopg2.connect(host="127.0.0.1", port=database, user="zoo", dbname="postgres", sslmode="require")
    with connection, connection.cursor() as cursor:
        cursor.execute("select ssl from pg_stat_ssl where pid = pg_backend_pid()")
        return cursor.fetchone()


for _ in range(3):
    print(curl(), postgresql(), len(ssl.get_server_certificate(("127.0.0.1", int(web)))) > 0, flush=True)
