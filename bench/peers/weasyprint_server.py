"""An HTTP server for WeasyPrint: it accepts a job with the fields of Platen's public API and responds with a PDF.

BENCH_CONCURRENCY processes share one socket, because one Python process uses one core.
WeasyPrint runs no scripts and writes no images, so it only gets the jobs for PDFs of static pages.
"""

import json
import os
import signal
import socket
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from weasyprint import CSS, HTML


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        job = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            status, body = 200, render(job)
        except Exception as error:  # any error counts as a failed job
            status, body = 500, str(error).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def render(job):
    if job["format"] != "pdf" or not job.get("html"):
        raise ValueError("only PDF of HTML is supported")
    # The page's own @page rules take precedence over this style sheet, as in a browser.
    paper = CSS(string=f"@page {{ size: {job['pdfFormat']} }}")
    return HTML(string=job["html"], base_url="about:blank").write_pdf(stylesheets=[paper])


def main():
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    server = HTTPServer(listener.getsockname(), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    workers = []
    for _ in range(int(os.environ["BENCH_CONCURRENCY"])):
        worker = os.fork()
        if worker == 0:
            server.serve_forever()
        workers.append(worker)

    def stop(*_):
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
