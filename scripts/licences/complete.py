"""Appends the licences of the dashboard's script to the notices, and checks that no list of a release lacks a package.

Usage: complete.py RELEASE EDITOR, the directories of the release and of the installed npm packages of the editor.
"""

import json
import pathlib
import re
import subprocess
import sys

release, editor = map(pathlib.Path, sys.argv[1:])
notices = release / "THIRD-PARTY-NOTICES.txt"
missing = []

# The packages that are bundled into the script.
lock = json.loads((editor / "package-lock.json").read_text())
text = ["", "=" * 80, "The dashboard contains the following npm packages, under the licences below.", ""]
packages = {
    path.split("node_modules/")[-1]: package
    for path, package in lock["packages"].items()
    if path and not package.get("dev") and not package.get("devOptional")
}
for name, package in sorted(packages.items()):
    files = sorted((editor / "node_modules" / name).glob("LICEN[CS]E*"))
    if not files:
        missing.append(f"{name}: the package has no file with its licence")
    text += ["", f"{name} {package['version']}", ""] + [file.read_text() for file in files]
if not packages:
    missing.append("editor: no packages were found")
with notices.open("a") as file:
    file.write("\n".join(text))
notices_text = notices.read_text()


def crates(package, target):
    """Names and versions of the crates that are linked into a package."""
    command = ["cargo", "tree", "--locked", "-p", package, "-e", "normal,no-proc-macro", "--prefix", "none"]
    tree = subprocess.run([*command, "--target", target], check=True, capture_output=True, text=True).stdout
    return {tuple(line.split()[:2]) for line in tree.splitlines() if line}


host = next(
    line.removeprefix("host: ")
    for line in subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout.splitlines()
    if line.startswith("host: ")
)
for package, name, target in [
    ("platen", "platen", host),
    ("platen-farm", "platen-farm", host),
    ("platen-edge", "platen_edge", "wasm32-wasip2"),
    ("platen-dashboard", "platen_dashboard", "wasm32-wasip2"),
]:
    bill = json.loads((release / "sbom" / f"{name}.cdx.json").read_text())
    listed = {(part["name"], "v" + part["version"]) for part in bill["components"]}
    for crate, version in sorted(crates(package, target)):
        if crate != package and (crate, version) not in listed:
            missing.append(f"{name}.cdx.json: {crate} {version}")
        if not crate.startswith("platen") and not re.search(
            rf"^  {re.escape(crate)} {re.escape(version[1:])}\b", notices_text, re.M
        ):
            missing.append(f"{notices.name}: {crate} {version}")
bill = json.loads((release / "sbom" / "editor.cdx.json").read_text())
listed = {part["name"] if not part.get("group") else f"{part['group']}/{part['name']}" for part in bill["components"]}
missing += [f"editor.cdx.json: {name}" for name in packages if name not in listed]

print("\n".join(missing) or f"{len(packages)} npm packages and all crates are listed")
sys.exit(bool(missing))
