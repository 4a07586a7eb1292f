"""`hashes.txt`: what the wheel needs, with the hashes of the files that pip may install. `python -m tests.hashes` asks
the package index and writes it.

Hashes are those that the index names for the files that pip would take, for each Python and each platform below.
Nothing is installed. The versions are those of `constraints.txt`.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "hashes.txt"
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = (  # newest first: a wheel names the oldest system on which it runs
    ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    ("macosx_14_0_arm64", "macosx_12_0_arm64", "macosx_11_0_arm64"),
)
SOURCES = ("antlr4-python3-runtime",)  # published as source alone
_HEAD = """\
# The packages that the wheel needs, with the hashes of their files: pip install --require-hashes -r hashes.txt
# Python 3.11 to 3.13 on Linux (x86_64, aarch64) and macOS (arm64); versions of constraints.txt. Made by make hashes.
"""


def pins() -> dict[str, str]:
    """Versions of `constraints.txt` by name of the package."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pairs = (line.split(";")[0].split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name.strip()): version.strip() for name, version in pairs}


def needed(name: str = "skg-bench") -> set[str]:
    """Packages that a package needs here, without extras, and those that these need."""
    known, left = set[str](), [name]
    while left:
        texts = requires(left.pop()) or []
        direct = (Requirement(text) for text in texts)
        names = {
            canonicalize_name(each.name) for each in direct if not each.marker or each.marker.evaluate({"extra": ""})
        }
        left += sorted(names - known)
        known |= names
    return known


def hashed(text: str) -> dict[str, tuple[str, set[str]]]:
    """Version and hashes of each package in the text of the file."""
    return {
        name: (version, set(re.findall(r"--hash=(sha256:[0-9a-f]{64})", line)))
        for line in text.replace("\\\n", "").splitlines()
        if line and not line.startswith("#")
        for name, version in [line.split()[0].split("==")]
    }


def _asked(names: Mapping[str, str], *options: str) -> Iterator[tuple[str, str]]:
    """Name and hash of each file that pip would take."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        where = ["--target", folder, "--dry-run", "--ignore-installed", "--no-deps", "--report", str(report)]
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *where, *options]
        subprocess.run([*pip, *(f"{name}=={version}" for name, version in names.items())], check=True)
        for item in json.loads(report.read_text("utf-8"))["install"]:
            digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
            yield canonicalize_name(item["metadata"]["name"]), f"sha256:{digest}"


def main() -> None:
    """Write the file."""
    versions = {name: version for name, version in sorted(pins().items()) if name in needed()}
    hashes: dict[str, set[str]] = {name: set() for name in versions}
    wheels = {name: version for name, version in versions.items() if name not in SOURCES}
    for python in PYTHONS:
        for tags in PLATFORMS:
            platforms = (word for tag in tags for word in ("--platform", tag))
            for name, digest in _asked(wheels, "--only-binary=:all:", "--python-version", python, *platforms):
                hashes[name].add(digest)
    sources = {name: versions[name] for name in SOURCES}
    for name, digest in _asked(sources, f"--no-binary={','.join(SOURCES)}"):
        hashes[name].add(digest)
    lines = [
        " \\\n    ".join([f"{name}=={version}", *(f"--hash={digest}" for digest in sorted(hashes[name]))])
        for name, version in versions.items()
    ]
    FILE.write_text("\n".join([_HEAD.rstrip(), *lines, ""]), "utf-8")


if __name__ == "__main__":
    main()
