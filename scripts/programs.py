"""Programs that a test starts, and requests to them."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

# For a slow machine; nothing here takes longer than some seconds.
PATIENCE_SECONDS = 120


class Program:
    """A program whose output is collected."""

    def __init__(self, name, command, environment):
        self.name = name
        self.lines = []
        # If this script is killed, the kernel ends the program.
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "--", *map(str, command)],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self.collect, daemon=True).start()

    def collect(self):
        self.lines.extend(iter(self.process.stdout.readline, ""))

    def until(self, pattern):
        """The first group of the pattern, once a line has it."""

        def found():
            # Without the colours of a terminal.
            text = re.sub(r"\x1b\[[0-9;]*m", "", "".join(self.lines))
            match = re.search(pattern, text)
            if not match and self.process.poll() is not None:
                sys.exit(f"{self.name} ended:\n{text}")
            return match and match.group(1)

        return wait(f"{self.name} writes {pattern}", found)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            sys.exit(f"{self.name} did not end after SIGTERM")


def wait(what, condition):
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        if value := condition():
            return value
        time.sleep(0.2)
    sys.exit(f"in {PATIENCE_SECONDS} s it did not happen that {what}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def get(url, token=None):
    headers = {"authorization": f"Bearer {token}"} if token else {}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, headers=headers), timeout=PATIENCE_SECONDS) as response:
        return response.read().decode()


def render(url, key, body):
    """The status of a render."""
    request = urllib.request.Request(
        url + "/v1/render",
        json.dumps(body).encode(),
        {"authorization": f"Bearer {key}", "content-type": "application/json"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=PATIENCE_SECONDS) as response:
            response.read()
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
