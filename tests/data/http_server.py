#!/usr/bin/env python3
"""A web server for the tests of downloading, on a free port of this machine. SPDX-License-Identifier: MIT

    http_server.py FOLDER      prints its port, then serves until its standard input closes

    /file/NAME      the file, with ranges            /whole/NAME     the file, ranges ignored
    /cut/NAME       half of what is left, then the connection is cut; a second request (with a range) gets the rest
    /redirect/NAME  to /file/NAME                    /circle         to itself
    anything else   404
"""
import http.server
import os
import sys
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, code, **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def do_GET(self):
        kind, _, name = self.path.lstrip("/").partition("/")
        path = os.path.join(sys.argv[1], os.path.basename(name))
        if kind == "circle":
            return self.answer(302, Location="/circle", Content_Length=0)
        if kind == "redirect":
            return self.answer(302, Location="/file/" + name, Content_Length=0)
        if kind not in ("file", "whole", "cut") or not os.path.isfile(path):
            return self.answer(404, Content_Length=0)
        with open(path, "rb") as f:
            data = f.read()
        start = 0
        wanted = self.headers.get("Range", "")
        if wanted.startswith("bytes=") and kind != "whole":
            start = int(wanted[6:].split("-")[0])
            if start >= len(data):
                return self.answer(416, Content_Length=0)
        part = data[start:]
        if start:
            self.answer(206, Content_Length=len(part), Content_Range="bytes %d-%d/%d" % (start, len(data) - 1, len(data)))
        else:
            self.answer(200, Content_Length=len(part))
        if kind == "cut" and start == 0:
            self.wfile.write(part[: len(part) // 2])
            self.wfile.flush()
            self.close_connection = True
            self.connection.close()
        else:
            self.wfile.write(part)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # a client that leaves early is what some tests are about


def main():
    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write("%d\n" % server.server_address[1])  # one write: the test reads once and closes
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
