"""Runs the commands of docs/runbooks.md as they are written there, against a server that is used; see test-runbooks.

Only what differs from machine to machine is replaced: identifiers, addresses, directories and systemctl. Everything listens on free
ports of 127.0.0.1 and has ended when this ends.
"""

import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading

from programs import PATIENCE_SECONDS, Program, free_port, get, render, wait

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ["PLATEN_BIN_DIR"])
RUNBOOKS = (ROOT / "docs/runbooks.md").read_text()
PAGE = {"html": "<p>Hello", "format": "png", "width": 100, "height": 100}
DATA_BYTES = 192 * 1024 * 1024


def commands(heading):
    """The lines of the blocks of shell commands below a heading, without comments."""
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", RUNBOOKS, re.M | re.S)
    assert section, f"docs/runbooks.md has no heading {heading}"
    lines = "".join(re.findall(r"^```sh\n(.*?)^```", section[1], re.M | re.S)).splitlines()
    assert lines, f"{heading} has no commands"
    return lines


class HeldPicture:
    """A picture at `url` whose response begins when it is released, so that the page that has it is in progress."""

    def __init__(self, stack):
        self.requested, self.released = threading.Event(), threading.Event()
        picture = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                picture.requested.set()
                picture.released.wait(PATIENCE_SECONDS)
                self.send_response(404)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        self.url = f"http://held.example:{server.server_port}/"


class Machine:
    """A directory for commands, and a server whose files are in another one."""

    def __init__(self, stack, directory, data):
        self.directory, self.data = directory, data
        self.environment = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "TMPDIR": str(directory),
            "PLATEN_DATA": str(data),
            # `platen check` finds a problem where the usual port is taken.
            "PLATEN_LISTEN": "127.0.0.1:0",
            "PLATEN_COMPONENTS": str(ROOT / "target/wasm32-wasip2/component"),
        }
        self.server = None
        stack.callback(self.stop)

    def start(self):
        self.server = Program(
            "platen",
            [BIN / "platen", "up", "--browsers", "2", "--resolve", "held.example=127.0.0.1"],
            self.environment,
        )
        self.url = self.server.until(r"platen is listening on (http://[0-9.:]+)")

    def stop(self):
        if self.server:
            self.server.stop()
            self.server = None

    def run(self, line, replacements=()):
        """The standard output of a line of a runbook."""
        if line == "systemctl stop platen":
            return self.stop()
        if line == "systemctl start platen":
            return self.start()
        for old, new in [("/var/lib/platen", str(self.data)), ("chown platen:platen", "stat"), *replacements]:
            line = line.replace(old, new)
        run = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line], cwd=self.directory, env={**os.environ, **self.environment},
            capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
        )
        assert run.returncode == 0, f"{line}: status {run.returncode}\n{run.stdout}{run.stderr}"
        return run.stdout

    def platen(self, *arguments):
        return json.loads(self.run(" ".join(["platen", *arguments, "--json"])))

    def account(self, name):
        [account] = [account for account in self.platen("account", "list") if account["name"] == name]
        return account

    def render(self, key, page=PAGE):
        return render(self.url, key, page)

    def rows(self):
        """The number of attempts that count and have a row."""
        sql = "SELECT count(*) FROM attempts WHERE counted"
        return int(self.run(f"sqlite3 -readonly {self.data}/platen.db '{sql}'"))


def key_of(output):
    return re.search(r"plt_\w+", output)[0]


def expect(what, found, expected):
    assert found == expected, f"{what}: {found} instead of {expected}"


def install(machine):
    machine.start()
    outputs = [machine.run(line) for line in commands("Install")]
    expect("a render with the new key", machine.render(key_of(outputs[2])), 200)
    assert "https://render.example.com/" in outputs[3], outputs[3]


def schema(machine):
    expect("steps of a database that is up to date", [machine.run(line) for line in commands("Schema")], ['{"applied":[]}\n'])


def backup_of_a_file(machine):
    kept = machine.platen("key", "create", "--account", "default")["key"]
    expect("a render before the backup", machine.render(kept), 200)
    used = machine.account("default")["attempts"]
    backup, *restore = commands("Backup and restore of a file")
    machine.run(backup)
    later = machine.platen("key", "create", "--account", "default")["key"]
    expect("a render after the backup", machine.render(later), 200)
    for line in restore:
        machine.run(line)
    expect("attempts after the backup was restored", machine.account("default")["attempts"], used)
    expect("a render with a key of the backup", machine.render(kept), 200)
    expect("a render with a later key", machine.render(later), 401)


def key_leak(machine):
    machine.run("platen account create acme")
    leaked = machine.platen("key", "create", "--account", "acme")
    expect("a render with the key", machine.render(leaked["key"]), 200)
    written = re.search(r"key_\w{20}", RUNBOOKS)[0]
    replace = [(written, leaked["id"])]
    key_list, roll = commands("A key has leaked")
    assert leaked["id"] in machine.run(key_list, replace)
    replacement = key_of(machine.run(roll, replace))
    expect("a render with the rolled key", machine.render(leaked["key"]), 401)
    expect("a render with its replacement", machine.render(replacement), 200)
    machine.run(re.search(r"`(platen key delete key_\w+)`", RUNBOOKS)[1], replace)
    assert leaked["id"] not in machine.run(key_list, replace)
    expect("a render with the replacement, later", machine.render(replacement), 200)
    return replacement


def harmful_account(machine, key):
    for line in commands("An account does harm"):
        machine.run(line)
        account = machine.account("acme")
        if "limits" in line:
            expect("the limits", (account["requests_per_minute"], account["concurrency"]), (60, 2))
        expect(f"a render after {line}", machine.render(key), 401 if "disable" in line else 200)
    expect("the quota", account["quota"], 1000)


def full_disk(machine, stack):
    key = machine.platen("key", "create", "--account", "default")["key"]
    expect("a render before the disk is full", machine.render(key), 200)
    picture, results = HeldPicture(stack), []
    page = {"html": f"<img src='{picture.url}'>", "format": "png"}
    in_progress = threading.Thread(target=lambda: results.append(machine.render(key, page)))
    in_progress.start()
    assert picture.requested.wait(PATIENCE_SECONDS), "the page in progress does not request its picture"
    used = machine.account("default")["attempts"]
    # Those of the account acme as well.
    wait("rows are written", lambda: machine.rows() == used - 1 + machine.account("acme")["attempts"])
    rows, before = machine.rows(), used
    filler = machine.data / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
    refused = []
    # The database may have some free space in its own files.
    while len(refused) < 3:
        status = machine.render(key)
        used += status == 200
        assert status in (200, 503), f"a render on a full disk: {status}\n{''.join(machine.server.lines)}"
        refused += [status] * (status == 503)
    # Reading goes on.
    expect("attempts on a full disk", machine.account("default")["attempts"], used)
    picture.released.set()
    in_progress.join()
    expect("the render that was in progress", results, [200])
    filler.unlink()

    def rendered():
        status = machine.render(key)
        assert status in (200, 503), f"a render after the disk was full: {status}"
        return status == 200

    wait("renders succeed when the disk has space again", rendered)
    expect("attempts afterwards", machine.account("default")["attempts"], used + 1)
    written = rows + 1 + used + 1 - before
    wait("the rows of all attempts are written", lambda: machine.rows() == written)
    for line in commands("The disk is full"):
        machine.run(line)
    expect("a render after the database was made smaller", machine.render(key), 200)


def backup_of_sqld(machine, stack, sqld):
    def start(arguments, port):
        program = Program("sqld", [sqld, *arguments], {"TMPDIR": str(machine.directory)})
        stack.callback(program.stop)
        wait("sqld is ready", lambda: is_ready(f"http://127.0.0.1:{port}/health"))

    def is_ready(url):
        try:
            get(url)
            return True
        except OSError:
            return False

    port, restored = free_port(), free_port()
    old, new = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{restored}"
    start(["--http-listen-addr", f"127.0.0.1:{port}", "-d", machine.directory / "old"], port)
    machine.run(f"platen migrate --db {old} && platen account create acme --quota 7 --db {old}")
    replace = [("https://db.example", old), ("http://127.0.0.1:8080", new)]
    for line in commands("Backup and restore of sqld"):
        if line.startswith("sqld "):
            arguments = line.replace("127.0.0.1:8080", f"127.0.0.1:{restored}").split()[1:]
            arguments[-1] = str(machine.directory / arguments[-1])
            start(arguments, restored)
            continue
        output = machine.run(line, replace)
        if line.startswith("tail"):
            expect("the end of the dump", output, "COMMIT;\n")
        if "integrity_check" in line:
            expect("the check of the restored database", output, "ok\n")
    assert "acme" in output, f"the restored database has no account: {output}"


def main():
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="platen-runbooks-")))
        # The browsers' user must reach its profiles.
        directory.chmod(0o711)
        data = directory / "data"
        data.mkdir()
        has_own_disk = os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DATA_BYTES}", "tmpfs", data], capture_output=True, check=False
        ).returncode == 0
        if has_own_disk:
            stack.callback(subprocess.run, ["umount", data], check=True)
        machine = Machine(stack, directory, data)
        install(machine)
        schema(machine)
        backup_of_a_file(machine)
        harmful_account(machine, key_leak(machine))
        left_out = []
        if has_own_disk:
            full_disk(machine, stack)
        else:
            left_out.append("the full disk: no file system of its own can be mounted")
        sqld = os.environ.get("PLATEN_SQLD")
        if sqld and shutil.which("sqlite3"):
            backup_of_sqld(machine, stack, sqld)
        else:
            left_out.append("sqld: PLATEN_SQLD is not set")
        print("the commands of the runbooks work" + "".join(f"; left out: {reason}" for reason in left_out))


if __name__ == "__main__":
    main()
