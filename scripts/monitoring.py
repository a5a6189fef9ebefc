"""Starts a farm, a server and Prometheus, renders, and runs all queries of deploy/monitoring; see test-monitoring.

Everything listens on free ports of 127.0.0.1 and has ended when this ends.
"""

import contextlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse

import yaml

from programs import PATIENCE_SECONDS, Program, free_port, get, render, wait

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ["PLATEN_BIN_DIR"])
MONITORING = ROOT / "deploy/monitoring"
TOKEN = "the token of the farm"


def expressions():
    """The queries of the dashboard and of the alerts, each with its place."""
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids)), "two panels have the same id"
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")
            yield f"panel {panel['title']!r}", expression
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text())
    for rule in [rule for group in rules["groups"] for rule in group["rules"]]:
        # Without the comparison, which is false where all is well.
        expression, comparisons = re.subn(r"\s(>|<|==)\s*[0-9.e]+\s*$", "", rule["expr"].strip())
        assert comparisons == 1, f"{rule['alert']} has no comparison at its end"
        # A recent run has no data of a quarter of an hour.
        yield f"alert {rule['alert']}", re.sub(r"\[\d+m\]", "[1m]", expression)
        anchor = rule["annotations"]["runbook"].split("#")[1]
        runbooks = (ROOT / "docs/runbooks.md").read_text()
        headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", runbooks, re.M)}
        assert anchor in headings, f"docs/runbooks.md has no heading for {anchor}"


def main():
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        # The browsers' user must reach its profiles.
        directory.chmod(0o711)

        def start(name, command, environment):
            program = Program(name, command, {"TMPDIR": str(directory), "PLATEN_FARM_TOKEN": TOKEN, **environment})
            stack.callback(program.stop)
            return program

        farm_command = [BIN / "platen-farm", "--listen", "127.0.0.1:0", "--browsers", "2", "--recycle-after", "5"]
        farm = start("platen-farm", farm_command, {}).until(r"listening.*address=([0-9.:]+)")
        # To compile the components takes 17 s of CPU time.
        components = ROOT / "target/wasm32-wasip2/component"
        (components / "compiled").mkdir(mode=0o700, exist_ok=True)
        (directory / "data").mkdir(mode=0o700)
        (directory / "data/cache").symlink_to(components / "compiled")
        server_program = start(
            "platen",
            [BIN / "platen", "up", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]
            + ["--data", directory / "data", "--components", components]
            + ["--farm-url", f"http://{farm}"],
            {},
        )
        server = server_program.until(r"platen is listening on (http://[0-9.:]+)")
        metrics = server_program.until(r"metrics on http://([0-9.:]+)/metrics")

        def command(*arguments):
            run = [BIN / "platen", *arguments, "--data", directory / "data", "--json"]
            return json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)

        command("account", "create", "default")
        key = command("key", "create", "--account", "default")["key"]
        port = free_port()
        # The example, with other addresses and another place of the token.
        configuration = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
        configuration["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        configuration["rule_files"] = [str(MONITORING / "alerts.yml")]
        (directory / "farm-token").write_text(TOKEN)
        addresses = {"platen": metrics, "platen-farm": farm}
        for job in configuration["scrape_configs"]:
            job["static_configs"] = [{"targets": [addresses[job["job_name"]]]}]
            if "authorization" in job:
                job["authorization"]["credentials_file"] = str(directory / "farm-token")
        (directory / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        start(
            "prometheus",
            ["prometheus", f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/tsdb"]
            + [f"--web.listen-address=127.0.0.1:{port}"],
            {},
        )

        def query(expression):
            url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
            try:
                return json.loads(get(url))["data"]["result"]
            except (OSError, urllib.error.URLError):
                return None

        wait("Prometheus has read both programs", lambda: len(query("up == 1") or []) == 2)
        denied = f'<img src="http://127.0.0.1:{port}/">'
        for body, expected in [
            ({"html": "<p>a", "format": "pdf"}, [200]),
            ({"html": "<p>b" + denied, "format": "png", "waitForTimeout": 100}, [200]),
            ({"html": "<p>c", "format": "webp", "waitUntil": "networkidle"}, [200]),
            ({"url": "http://127.0.0.1/"}, [400]),
            # The second where the name server does not answer.
            ({"url": "http://site.invalid/"}, [422, 503]),
            ({"html": "<p>d", "scale": 9}, [400]),
        ]:
            status = render(server, key, body)
            assert status in expected, f"{body}: {status}"
        for number in range(12):
            assert render(server, key, {"html": f"<p>{number}", "format": "pdf"}) == 200
        checks, found = 0, set()
        for place, token in ((f"http://{metrics}/metrics", None), (f"http://{farm}/metrics", TOKEN)):
            text = get(place, token)
            # promtool reads the older text format only, in which the metadata of a counter have its suffix.
            for counter in re.findall(r"^# TYPE (\S+) counter$", text, re.M):
                text = re.sub(rf"^(# \w+ {counter}) ", r"\1_total ", text, flags=re.M)
            lint = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
            assert lint.returncode == 0, f"promtool check metrics: {lint.stdout}{lint.stderr}"
            checks += 1
            found |= set(re.findall(r"^# TYPE (\S+ \S+)$", text, re.M))
        rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", (ROOT / "docs/monitoring.md").read_text(), re.M)
        documented = {" ".join(row) for row in rows}
        assert found == documented, f"docs/monitoring.md differs from the metrics: {sorted(found ^ documented)}"

        def without_data(expression):
            result = query(expression)
            values = [float(sample["value"][1]) for sample in result or [] if isinstance(sample, dict)]
            return not any(not math.isnan(value) for value in values)

        missing = list(expressions())
        total = len(missing)

        def all_have_data():
            missing[:] = [(place, text) for place, text in missing if without_data(text)]
            # The rate of a quotient has no value where nothing has happened within its time.
            render(server, key, {"html": "<p>again", "format": "pdf"})
            return not missing

        until = time.monotonic() + PATIENCE_SECONDS
        while not all_have_data() and time.monotonic() < until:
            time.sleep(0.5)
        if missing:
            sys.exit("these queries return no data:\n" + "\n".join(f"{place}: {text}" for place, text in missing))
        rules = json.loads(get(f"http://127.0.0.1:{port}/api/v1/rules"))["data"]["groups"]
        bad = [rule["name"] for group in rules for rule in group["rules"] if rule["health"] == "err"]
        assert not bad, f"rules with errors: {bad}"
        print(f"{total} queries of the dashboard and of the alerts return data; {checks} programs' metrics are clean")


if __name__ == "__main__":
    main()
