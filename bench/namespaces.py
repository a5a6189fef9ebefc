"""Hosts for benchmarks: network namespaces, the links between them, and the programs in them.

Needs root and iproute2. Everything that is made here is removed when its context ends.
"""

import ctypes
import http.client
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
import urllib.request
import zlib

CLONE_NEWNET = 0x40000000
PREFIX = f"pl{os.getpid()}"


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def namespace(host):
    return f"{PREFIX}-{host}"


def missing():
    """What this machine lacks for namespaces, or None."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        return "root and iproute2 are needed"
    if not shutil.which("haproxy"):
        return "haproxy is needed"
    probe = namespace("probe")
    commands = [
        ["netns", "add", probe],
        ["-n", probe, "link", "add", "bridge", "type", "bridge"],
        ["-n", probe, "link", "add", "one", "type", "veth", "peer", "name", "two"],
    ]
    try:
        for command in commands:
            made = subprocess.run(["ip", *command], capture_output=True, text=True, check=False)
            if made.returncode != 0:
                return f"this machine does not allow ip {' '.join(command)}: {made.stderr.strip()}"
    finally:
        subprocess.run(["ip", "netns", "delete", probe], capture_output=True, check=False)
    return None


def enter(host):
    """Moves the calling thread into the network namespace of a host."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace(host)}", encoding="ascii") as file:
        if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the namespace of {host}")


def inside(host, function, *arguments):
    """Runs a function in a thread of a host's namespace and returns its result."""
    results = queue.Queue()

    def body():
        try:
            enter(host)
            results.put((True, function(*arguments)))
        except Exception as error:
            results.put((False, error))

    threading.Thread(target=body, daemon=True).start()
    right, result = results.get()
    if not right:
        raise result
    return result


class Bridge:
    """Hosts on one bridge. `addresses` are those of the hosts, in a network of 24 bits."""

    def __init__(self, addresses):
        self.addresses, self.made = addresses, []

    def __enter__(self):
        try:
            self.make_all()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make_all(self):
        self.make("net")
        run("ip", "-n", namespace("net"), "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", namespace("net"), "link", "set", "bridge", "up")
        for host, address in self.addresses.items():
            self.make(host)
            run("ip", "-n", namespace("net"), "link", "add", host, "type", "veth", "peer", "name", "eth0",
                "netns", namespace(host))
            run("ip", "-n", namespace("net"), "link", "set", host, "master", "bridge", "up")
            run("ip", "-n", namespace(host), "address", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", namespace(host), "link", "set", "eth0", "up")

    def make(self, host):
        run("ip", "netns", "add", namespace(host))
        self.made.append(host)
        run("ip", "-n", namespace(host), "link", "set", "lo", "up")

    def link(self, host, state):
        """The bridge's side goes up or down: the host keeps its address and sees no reset."""
        run("ip", "-n", namespace("net"), "link", "set", host, state)

    def __exit__(self, *_):
        for host in reversed(self.made):
            subprocess.run(["ip", "netns", "delete", namespace(host)], check=False)


class Processes:
    """Programs by name, each in the namespace of a host, with a log in `directory`."""

    def __init__(self, directory):
        self.directory, self.running, self.commands = directory, {}, {}

    def start(self, name, command, environment, host=None):
        self.commands[name] = (command, environment, host)
        with open(self.directory / f"{name}.log", "ab") as log:
            self.running[name] = subprocess.Popen(
                ["ip", "netns", "exec", namespace(host or name), *map(str, command)],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, **environment},
                start_new_session=True)

    def restart(self, name):
        self.start(name, *self.commands[name])

    def signal(self, name, number):
        """To the process and its group; browsers that have groups of their own do not get it."""
        os.killpg(self.running[name].pid, number)

    def kill(self, name):
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def stop(self, *names):
        processes = [self.running.pop(name) for name in names]
        for process in processes:
            for number in (signal.SIGCONT, signal.SIGTERM):
                try:
                    os.killpg(process.pid, number)
                except ProcessLookupError:
                    pass
        for process in processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def stop_all(self):
        self.stop(*list(self.running))

    def print_logs(self, file):
        for log in sorted(self.directory.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text(errors='replace')[-1500:]}", file=file)


def get_status(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return response.status
    except (OSError, http.client.HTTPException):
        return None


def wait_ready(host, url, seconds=60):
    """Waits until a URL answers with 200 to a request from a host."""
    end = time.monotonic() + seconds
    while inside(host, get_status, url) != 200:
        if time.monotonic() > end:
            raise RuntimeError(f"{url} was not ready within {seconds} s")
        time.sleep(0.1)


def first_pixel(png):
    """(width, height, (r, g, b)) of a PNG file with 8 bits a channel or a palette."""
    if png[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("not a PNG file")
    position, data, palette, header = 8, b"", None, b""
    while position < len(png):
        length, kind = int.from_bytes(png[position:position + 4], "big"), png[position + 4:position + 8]
        body = png[position + 8:position + 8 + length]
        if kind == b"IHDR":
            header = body
        elif kind == b"PLTE":
            palette = body
        elif kind == b"IDAT":
            data += body
        position += 12 + length
    # The first pixel has no neighbours, so every filter leaves it as it is.
    raw = zlib.decompress(data)[1:4]
    if header[9] == 3:
        index = raw[0] >> (8 - header[8])
        raw = palette[3 * index:3 * index + 3]
    elif header[9] in (0, 4):
        raw = raw[:1] * 3
    return int.from_bytes(header[:4], "big"), int.from_bytes(header[4:8], "big"), tuple(raw)
