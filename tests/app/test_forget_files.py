"""Files that somebody put into a run folder: whoever is removed is found there however the name is written."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import re
import shutil
import zipfile
from collections.abc import Callable
from html import escape
from pathlib import Path

import pytest

import skg_bench
from skg_bench.app import forget
from skg_bench.core.foreign import LARGEST_FILE
from skg_bench.core.text import script_json
from skg_bench.runfolder.run import Run
from tests.analysis.labels.planted_log import ARMS, COLUMNS, play_log, write_log
from tests.app.test_cli import call

NAME = 'Zoë "Ann" O\'Brien & Co <😀>'
USER = "user 3"


def play_small(folder: Path) -> None:
    """Six users of two weeks."""
    play_log(folder, users=6, weeks=2)


@pytest.fixture
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removals end without tables and page, and look for no copies elsewhere."""
    monkeypatch.setattr(forget, "write_outputs", Run)
    for name in ("OPIK_URL_OVERRIDE", "OPIK_API_KEY", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(once: Callable[..., Path], elsewhere: Path, untold: None) -> Path:
    """A copy of a replayed log."""
    return Path(shutil.copytree(once("small_log", play_small) / "run", elsewhere / "run")).relative_to(elsewhere)


def found(path: Path, content: bytes, name: str = NAME) -> list[str]:
    """Lines on a folder in which a file has this content."""
    path.write_bytes(content)
    return list(forget._other_files(path.parent, name))


def in_csv(text: str) -> str:
    lines = io.StringIO()
    csv.writer(lines).writerow([text, "right"])
    return lines.getvalue()


WRITINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in JSON": json.dumps,
    "in JSON of letters": lambda text: json.dumps(text, ensure_ascii=False),
    "in JSON in capitals": lambda text: re.sub(r"(?<=\\u)\w{4}", lambda code: code[0].upper(), json.dumps(text)),
    "in a script": script_json,
    "in a script without quotes": lambda text: script_json(text).replace("'", "\\u0027").replace('\\"', "\\u0022"),
    "in HTML": escape,
    "in HTML by numbers": lambda text: escape(text).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
    "in HTML of letters": lambda text: "".join(sign if sign.isascii() else f"&#{ord(sign)};" for sign in escape(text)),
    "in XML": lambda text: escape(text).replace("&#x27;", "&apos;"),
    "in CSV": in_csv,
    "in yaml": lambda text: "'" + text.replace("'", "''") + "'",
}


@pytest.mark.parametrize("writing", WRITINGS.values(), ids=WRITINGS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_name_is_found_however_a_file_writes_it(
    writing: Callable[[str], str], encoding: str, elsewhere: Path
) -> None:
    text = f"who: {writing(NAME)}; what: asked again"
    (line,) = found(elsewhere / "notes", text.encode(encoding))
    assert line.endswith("notes is no file of the run, and has this name in it: delete it, or take the name out")
    assert found(elsewhere / "notes", text.replace("Brien", "Brian").encode(encoding)) == []


def test_a_name_is_found_in_the_letters_of_windows(elsewhere: Path) -> None:
    assert found(elsewhere / "notes", "Zoë was here".encode("cp1252"), "Zoë")
    assert found(elsewhere / "notes", b"Zo was here", "Zoë") == []


@pytest.mark.parametrize("sign", ['"', "'", "\\", "&", "é"])
def test_a_name_of_one_sign_ends_its_search(sign: str, elsewhere: Path) -> None:
    """A search that tries all ways to read such a row would not end."""
    for text in (sign * 150, f"\\{sign}" * 150, escape(sign) * 150, script_json(sign)[1:-1] * 150):
        assert found(elsewhere / "notes", f"{text}y".encode(), f"{sign * 100}x") == []
        assert found(elsewhere / "notes", f"{text}x".encode(), f"{sign * 3}x") != []


def packed(text: bytes) -> dict[str, bytes]:
    """A text in files of several kinds."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("log.csv", text)
    return {
        "log.csv.gz": gzip.compress(text), "log.zip": archive.getvalue(), "log.csv.bz2": bz2.compress(text),
        "log.csv.xz": lzma.compress(text), "log.csv.zst": b"\x28\xb5\x2f\xfd\0", "log.7z": b"7z\xbc\xaf\x27\x1c\0",
    }  # fmt: skip


def test_files_that_are_compressed_were_not_looked_into(folder: Path) -> None:
    files = packed(f"{USER},again\n".encode() * 99)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert code == 1
    for name in files:
        assert f"left: run/{name} is no file of the run, and holds compressed data, which was not looked into" in out


def play_named(folder: Path) -> None:
    """The same log, in which the user has the name."""
    folder.mkdir(parents=True, exist_ok=True)
    with write_log(folder, users=6, weeks=2).open(newline="") as lines:
        rows = list(csv.reader(lines))
    with (folder / "log.csv").open("w", newline="") as file:
        csv.writer(file).writerows([NAME if row[0] == USER else row[0], *row[1:]] for row in rows)
    words = ["simulator=recorded", f"simulator.path={folder / 'log.csv'}", COLUMNS, ARMS, "reference=never"]
    skg_bench.run([*words, f"out={folder / 'run'}"], progress=False)


def test_our_own_page_for_judging_holds_whoever_is_removed(
    once: Callable[..., Path], elsewhere: Path, untold: None
) -> None:
    shutil.copytree(once("named_log", play_named) / "run", elsewhere / "run")
    call("data", "label", "run", "--n", "200", "--page", "run/label.html", "--out", "run/label.csv")
    assert Path("run/label.html").read_text("utf-8").count(script_json(NAME))
    code, out, _ = call("forget", "run", "--user", NAME)
    assert code == 1
    for name in ("label.html", "label.csv"):
        assert f"left: run/{name} is no file of the run, and has this name in it: delete it, or take the name" in out


def test_a_name_that_stands_in_any_file_is_said_not_to_be_looked_for(elsewhere: Path) -> None:
    (line,) = found(elsewhere / "notes", b"nothing", "7")
    assert "notes is no file of the run, and the name is too short to be looked for" in line


def test_a_file_that_is_too_large_was_not_looked_into(elsewhere: Path) -> None:
    place = elsewhere / "notes"
    place.touch()
    os.truncate(place, LARGEST_FILE + 1)  # of zeros that take no room
    (line,) = forget._other_files(elsewhere, NAME)
    assert "notes is no file of the run, and was not looked into (" in line
    assert "at most 1,073,741,824 are read" in line
