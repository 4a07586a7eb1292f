"""`skg-bench forget`: one user out of a run folder, and out of its copies elsewhere.

Copies come first, while the run still says what they hold. Then all files are written anew beside the old ones, and
moved over them (runfolder/forgetting.py): a command that was killed is completed by the next one.
"""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from html import escape
from itertools import product
from pathlib import Path

import numpy as np

from skg_bench.analysis.labels.hit_pairs import hit_pairs
from skg_bench.analysis.labels.labelled_run import judged_arms
from skg_bench.analysis.labels.rater_labels import JUDGE_FILE, LABELS_FILE, labels_seed, labels_text, merged, read_sheet
from skg_bench.app.launch import write_outputs
from skg_bench.app.progress import console
from skg_bench.app.tracked_copies import forget_copies
from skg_bench.asking.asking import ASKS_FOLDER
from skg_bench.asking.recorded_removal import recordings_without
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.foreign import bytes_of
from skg_bench.core.temporary import replace_whole
from skg_bench.core.text import plural, printable
from skg_bench.runfolder import forgetting, shards
from skg_bench.runfolder.deliveries import DELIVERIES_FILE
from skg_bench.runfolder.lock import held
from skg_bench.runfolder.manifest import MANIFEST, TABLES
from skg_bench.runfolder.measured_run import shared_by
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.wholeness import lost_shards

_OURS = (MANIFEST, *TABLES, LABELS_FILE, DELIVERIES_FILE, *shards.LOGS, ASKS_FOLDER, "pool")  # in a run folder
_RECORDED = "skg_bench.llm.recorded.RecordedModel"
_SHORT = 3  # characters or bytes; a shorter name stands in any file
_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "cp1252")  # those in which a log may be, without marks
_DOUBLED = ("", '"', "'", "\\")  # what CSV, yaml and JSON write twice
# Beginnings of files of gzip, zip (spreadsheets too), Zstandard, bzip2, xz, 7-Zip, Parquet and PDF.
_COMPRESSED = (b"\x1f\x8b", b"PK\3\4", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"PAR1", b"%PDF")


def forget_user(folder: Path, user: str, recordings: Sequence[Path]) -> bool:
    """Remove a user, as the log names them; returns whether nothing that is known is left. `recordings`: folders
    outside of the run.

    Raises UsageError for a run that is not finished or not whole, a user whom it does not have, and the only one;
    then nothing is changed. OSError.
    """
    screen = console()
    if not (folder / MANIFEST).is_file():
        Run(folder)  # says what it is
    with held(folder, "run"):
        interrupted = _completed(folder)
        run = Run(folder)
        names = _names(run)
        if interrupted and user not in names:
            screen.print(f"{folder}: the removal that was interrupted is complete", soft_wrap=True)
            return True
        number = _number(run, user, names)
        _check_whole(run)
        for place in recordings:
            if not place.is_dir():
                raise UsageError(f"--recording {place} is no folder")
        log = run.manifest.get("log") or {}
        turns = run.turns(run.arms[0], ["user"], [number]).num_rows
        copies = list(forget_copies(run, number))
        with forgetting.written_beside(folder):
            texts = forgetting.write_logs_without(run, number)
            _write_labels(run, number)
            _write_recordings(run, texts.only_mine, recordings)
        _completed(folder)
    left = [line for line, gone in copies if not gone]
    left += [*_other_recordings(run, recordings), *_other_files(folder, user), *_texts_of_others(texts.others, user)]
    others = "1 user is left" if len(names) == 2 else f"{len(names) - 1:,} users are left"
    lines = [f"{folder}: removed a user with {plural(turns, 'turn')}; {others}"]
    lines += [line for line, gone in copies if gone]
    lines += _sharing(run)
    if log:
        lines.append(
            f"{log['file']} still has this user: remove them there too, or the next run of it brings them back"
        )
    for line in [*lines, *(f"left: {line}" for line in left)]:
        screen.print(printable(line), soft_wrap=True, markup=False, highlight=False)
    return not left


def _completed(folder: Path) -> bool:
    """Complete a removal that was interrupted; False: there was none, or it had changed nothing."""
    forgetting.drop_unfinished(folder)
    if (folder / forgetting.MOVING).exists():
        forgetting.move_over(folder)
    if not (folder / forgetting.TABLES_MISSING).exists():
        return False
    write_outputs(folder)
    forgetting.end_removal(folder)
    return True


def _names(run: Run) -> dict[str, int]:
    """Number of each user by name."""
    table = run.turns(run.arms[0], ["logged_user"])
    number, first = np.unique(table["user"].to_numpy(), return_index=True)
    names = table["logged_user"].take(first).to_pylist()
    return {name: int(user) for name, user in zip(names, number.tolist(), strict=True) if name is not None}


def _number(run: Run, user: str, names: dict[str, int]) -> int:
    if not names and run.domain.recorded:
        raise UsageError(
            f"{run.path} does not keep the names of its users; take the person out of the table, delete the folder, "
            "and run again"
        )
    if not names:
        raise UsageError(f"{run.path}: its users are simulated, so there is nobody to remove")
    log = run.manifest.get("log") or {}
    shown = _hashed(run, user) if log.get("redacted") else user
    if shown not in names:
        raise UsageError(f"--user {user}: {run.path} has no such user; {nearest(shown, names)}")
    if len(names) == 1:
        raise UsageError(f"--user {user}: {run.path} has no other user; delete the folder")
    return names[shown]


def _hashed(run: Run, user: str) -> str:
    """A name as a redacted run shows it."""
    secret = str(run.manifest["data"]["simulator"]).encode()[:64]
    return blake2b(user.encode(), key=secret, digest_size=8).hexdigest()


def _check_whole(run: Run) -> None:
    if not run.finished:
        raise UsageError(
            f"{run.path} is not finished, and to go on it reads the log, which has this user: finish it with the same "
            "`skg-bench run` command, and remove the user then; or delete the folder"
        )
    places = [(arm, number) for arm in run.arms for number in run.numbers(arm)]
    if fault := next(lost_shards(run, places, run.manifest.get("shards", {})), None):
        raise UsageError(fault)


def _write_labels(run: Run, user: int) -> None:
    """Labels of pairs of others, by people and by judges."""
    files = [file for name in (LABELS_FILE, JUDGE_FILE.format("*")) for file in sorted(run.path.glob(name))]
    if not files:
        return
    pairs = hit_pairs(run, judged_arms(run))
    asker = pairs.table["user"].to_numpy()
    rest = set[int]()
    for hits in pairs.arms:
        others = asker[hits.turn] != user
        rest.update(hits.pair[others].tolist(), hits.logged[others].tolist())
    for file in files:
        kept = {pair: labels for pair, labels in merged(read_sheet(file)).items() if pair in rest}
        replace_whole(run.path / forgetting.NEW / file.name, labels_text(kept, labels_seed(file)).encode())


def _write_recordings(run: Run, texts: Collection[str], folders: Sequence[Path]) -> None:
    """Recordings without asks that hold these texts: of the run with its new files, of other folders in their place."""
    places = {run.path / ASKS_FOLDER: run.path / forgetting.NEW / ASKS_FOLDER, **{each: each for each in folders}}
    for folder, place in places.items():
        for name, content in recordings_without(folder, texts):
            place.mkdir(mode=0o700, exist_ok=True)
            replace_whole(place / name, content)


def _other_recordings(run: Run, folders: Sequence[Path]) -> Iterator[str]:
    """Lines on recordings outside of the run that nobody named."""
    known = {folder.resolve() for folder in folders}
    for name in sorted(set(_recorded(run.manifest["compositions"]))):
        if Path(name).resolve() not in known:
            yield f"recordings in {name} may hold messages of this user; --recording {name} removes them, before a run"


def _recorded(node: object) -> Iterator[str]:
    """Folders of recordings that a configuration names."""
    if isinstance(node, dict):
        if node.get("_target_") == _RECORDED and isinstance(node.get("folder"), str):
            yield node["folder"]
        for inner in node.values():
            yield from _recorded(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _recorded(inner)


def _other_files(folder: Path, user: str) -> Iterator[str]:
    """Lines on files that somebody put into the folder, and that hold the name, or may hold it."""
    searches = _searches(user)
    for file in sorted(folder.rglob("*")):
        ours = file.relative_to(folder).parts[0] in _OURS or file.match(JUDGE_FILE.format("*"))
        if file.is_file() and not ours and (reason := _reason(file, searches)):
            yield f"{file} is no file of the run, and {reason}"


def _reason(file: Path, searches: Collection[re.Pattern[bytes]]) -> str:
    """Reason to look at a file, and what to do; empty: it does not hold the name."""
    if not searches:
        return "the name is too short to be looked for: see whether this user is in it, and delete it then"
    try:
        content = bytes_of(file)
    except UsageError as error:
        return f"was not looked into ({error}): delete it if this user may be in it"
    if any(search.search(content) for search in searches):
        return "has this name in it: delete it, or take the name out"
    if content.startswith(_COMPRESSED):
        return "holds compressed data, which was not looked into: delete it if this user may be in it"
    return ""


def _searches(name: str) -> list[re.Pattern[bytes]]:
    """Searches for a name as a file may write it, by encoding; none for a name that stands in any file."""
    if len(name.encode()) < _SHORT:
        return []
    patterns = set[bytes]()  # a name in ASCII is the same in two encodings
    for encoding, doubled in product(_ENCODINGS, _DOUBLED):
        with suppress(UnicodeEncodeError):  # it has no such characters
            if len(name.encode(encoding)) >= _SHORT:
                signs = [[re.escape(form.encode(encoding)) for form in _forms(sign, doubled)] for sign in name]
                patterns.add(b"".join(b"(?:" + b"|".join(forms) + b")" for forms in signs))
    return [re.compile(pattern) for pattern in patterns]


def _forms(sign: str, doubled: str) -> list[str]:
    """A character as texts, CSV, JSON, scripts and HTML write it. No form is another one twice, as a search would try
    all ways to read a row of quotes.
    """
    plain = sign * 2 if sign == doubled else sign
    if sign.isascii() and (sign.isalnum() or sign == " "):
        return [plain]
    units, number = sign.encode("utf-16-be").hex(" ", 2), ord(sign)
    script = [f"\\u{digits}".replace(" ", "\\u") for digits in (units, units.upper())]
    html = [escape(sign), f"&#{number};", f"&#x{number:x};", f"&#x{number:X};", *(["&apos;"] if sign == "'" else [])]
    json_too = [] if sign == "\\" else [f"\\{sign}", json.dumps(sign)[1:-1]]
    forms = {plain, *script, *html, *json_too}
    return sorted(forms if plain == sign else forms - {sign})


def _texts_of_others(texts: Collection[str], user: str) -> Iterator[str]:
    """A line on what others said of this user."""
    named = re.compile(rf"(?<!\w){re.escape(user)}(?!\w)")  # not inside of another word
    if len(user) >= _SHORT and (n := sum(named.search(text) is not None for text in texts)):
        yield f"{plural(n, 'text')} of others with this name in it: what others said stays theirs"


def _sharing(run: Run) -> Iterator[str]:
    for arm, users in shared_by(run).items():
        yield (
            f"arm {arm}: {users:,} users share one memory, so what others were answered may be as it is because of "
            "this user; for figures without them, replay a log without them"
        )
