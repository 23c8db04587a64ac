"""What gunicorn serves."""


def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "19")])
    return [b"hello from the zoo\n"]
