"""One user out of a run: nothing of them is left, the others are as in a log without them, and a kill loses nothing."""

import csv
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skg_bench
from skg_bench.analysis import report
from skg_bench.analysis.labels.rater_labels import LABELS_FILE
from skg_bench.analysis.summary import read_summary
from skg_bench.app import forget
from skg_bench.asking.asking import Completion, Prompt
from skg_bench.asking.recorded_asks import Ask
from skg_bench.asking.recording import Recording
from skg_bench.core.errors import UsageError
from skg_bench.runfolder import forgetting, shards
from skg_bench.runfolder.run import Run
from tests.analysis.labels.planted_log import ARMS, COLUMNS, play_log
from tests.app.test_cli import call, refused
from tests.app.test_imported_run import exported
from tests.runs import changed, rewritten, tables_alone

USER, OTHER = "user 3", "user 4"
SIMULATED = {"tokens", "latency_ms"}  # the log has none: they are drawn by a user's number, which another log changes
SETTINGS = {"model": "m", "temperature": 0.0, "top_p": 1.0}


def play_small(folder: Path) -> None:
    """Six users of two weeks: whoever is removed takes a fraction of a second."""
    play_log(folder, users=6, weeks=2)


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPIK_URL_OVERRIDE", "OPIK_API_KEY", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removals end without tables and page, which the test does not look at."""
    monkeypatch.setattr(forget, "write_outputs", Run)


@pytest.fixture
def folder(once: Callable[..., Path], elsewhere: Path) -> Path:
    """A copy of a replayed log, and the log beside it."""
    made = once("small_log", play_small)
    shutil.copy(made / "log.csv", elsewhere)
    return Path(shutil.copytree(made / "run", elsewhere / "run")).relative_to(elsewhere)


def rows() -> list[dict[str, str]]:
    with Path("log.csv").open(newline="") as lines:
        return list(csv.DictReader(lines))


def only_of(user: str) -> list[str]:
    """Texts that only this user has, and that stand in no text of others."""
    mine = {row[name] for row in rows() if row["user"] == user for name in ("message", "answer")}
    others = "\n".join({row[name] for row in rows() if row["user"] != user for name in ("message", "answer")})
    return sorted(text for text in mine if text not in others)


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """All files, Parquet files also unpacked."""
    for file in folder.rglob("*"):
        if file.is_file():
            yield file, file.name.encode() + b"\n" + file.read_bytes()
        if file.suffix == ".parquet":
            table = pq.read_table(file, partitioning=None)
            for column in table.columns:
                texts = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
                yield file, "\n".join(map(str, texts.to_pylist())).encode()


def holding(folder: Path, words: list[str]) -> set[str]:
    """Files in which one of the words stands, as it is or as JSON has it."""
    forms = [form.encode() for word in words for form in {word, json.dumps(word)[1:-1]}]
    return {str(file.relative_to(folder)) for file, data in contents(folder) if any(form in data for form in forms)}


def judge_all(run: Path) -> None:
    call("data", "label", str(run), "--n", "100000", "--out", "all.csv")
    with Path("all.csv").open(newline="") as lines:
        sheet = list(csv.DictReader(lines))
    with Path("ann.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, sheet[0])
        writer.writeheader()
        writer.writerows({**row, "label": "right"} for row in sheet)
    call("data", "label", str(run), "--read", "ann.csv")


def test_nothing_of_a_user_is_left_and_the_others_are_whole(folder: Path) -> None:
    judge_all(folder)
    assert call("report", str(folder), "--user", USER)[0] == 0
    words, others = [USER, *only_of(USER)], [OTHER, *only_of(OTHER)]
    assert len(words) > 20
    before = holding(folder, words)
    assert {name.partition("/")[0].partition("-")[0] for name in before} >= {"turns", "updates", "report"}
    labels = (folder / LABELS_FILE).read_text().splitlines()
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert code == 0
    assert out.startswith("run: removed a user with 307 turns; 5 users are left\nlog.csv still has this user: ")
    assert holding(folder, words) == set()
    assert {name.partition("/")[0] for name in holding(folder, others)} >= {"turns", "updates", "report.html"}
    kept = (folder / LABELS_FILE).read_text().splitlines()
    assert 20 < len(kept) < len(labels)
    assert set(kept) < set(labels)
    code, out, _ = call("run", "--check", str(folder))
    assert (code, out) == (0, "run: 3 arms, 12 files of logs, 0.3 MB: all is as it was written\n")
    assert "Removed since" in (folder / "report.html").read_text()
    assert "1 of 6 users" in (folder / "report.html").read_text()
    assert Run(folder).manifest["removed_users"] == 1
    assert Run(folder).manifest["log"]["users"] == 5
    assert "5 users, 2 weeks" in Run(folder)._repr_html_()
    assert "5 x 2" in call("runs", ".")[1]
    assert call("compare", str(folder), "--metric", "hit_rate")[1].startswith("5 users, 271 turns of each arm")


def test_figures_are_those_of_a_log_without_the_user(folder: Path) -> None:
    with tables_alone():
        call("forget", str(folder), "--user", USER)
    lines = Path("log.csv").read_text().splitlines(keepends=True)
    Path("less.csv").write_text("".join(line for line in lines if not line.startswith(f"{USER},")))
    words = ["simulator=recorded", "simulator.path=less.csv", COLUMNS, ARMS, "reference=never", "out=less"]
    with tables_alone():
        without, after = read_summary(skg_bench.run(words, progress=False)), read_summary(Run(folder))
    for ours, theirs in ((after.arms, without.arms), (after.differences, without.differences)):
        for arm, figures in theirs.items():
            for name in figures.keys() - SIMULATED:
                assert ours[arm][name] == figures[name], f"{arm}: {name}"


def test_a_text_that_others_said_too_stays_theirs(folder: Path, untold: None) -> None:
    shared = {row["message"] for row in rows() if row["user"] == USER} - set(only_of(USER))
    theirs = {row["message"] for row in rows() if row["user"] != USER}
    both = sorted(shared & theirs)
    assert both
    call("forget", str(folder), "--user", USER)
    said = set(Run(folder).turns("all", ["message"])["message"].cast(pa.string()).to_pylist())
    assert set(both) <= said


def test_a_second_time_names_who_is_there(folder: Path) -> None:
    call("forget", str(folder), "--user", USER)
    assert "run has no such user; did you mean 'user" in refused("forget", str(folder), "--user", USER)
    assert "valid: user 0, user 1, user 2, user 4, user 5" in refused("forget", "run", "--user", "nobody")
    assert call("forget", str(folder), "--user", OTHER)[1].startswith("run: removed a user with ")
    assert Run(folder).manifest["removed_users"] == 2
    assert call("run", "--check", str(folder))[0] == 0


def test_what_cannot_be_removed_is_refused_and_changes_nothing(folder: Path, tiny_run: Run) -> None:
    files = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    assert "its users are simulated" in refused("forget", str(tiny_run.path), "--user", "0")
    assert "is no run directory" in refused("forget", "nowhere", "--user", USER)
    assert "--recording nothing is no folder" in refused("forget", "run", "--user", USER, "--recording", "nothing")
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == files
    turns = shards.path(folder, "turns", "near", 0)
    turns.write_bytes(turns.read_bytes()[:-9])
    assert "turns/near.0000000.parquet is torn" in refused("forget", "run", "--user", USER)
    turns.write_bytes(files[turns])
    changed(Run(folder), incomplete=True)
    assert "run is not finished" in refused("forget", "run", "--user", USER)


def test_the_only_user_is_a_folder_to_delete(folder: Path, untold: None) -> None:
    for user in range(5):
        call("forget", str(folder), "--user", f"user {user}")
    assert "run has no other user; delete the folder" in refused("forget", "run", "--user", "user 5")


REPLACED = 14  # files that are written before the first is moved: 12 logs, the manifest, labels
KILLS: dict[str, tuple[Any, str, int, bool]] = {
    "while shards are written": (shards, "write_log", 5, True),
    "before it is decided": (forgetting, "commit_removal", 1, False),
    "when it is decided": (forgetting, "move_over", 1, False),
    "while files are moved": (Path, "replace", REPLACED + 4, False),
    "when all are moved": (forgetting, "move_over", 1, True),
    "while tables are written": (report, "write_page", 1, False),
    "at the end": (forgetting, "end_removal", 1, False),
}


def killed(owner: Any, name: str, n: int, after: bool) -> int:
    """Exit code of a process that removes the user, and is killed at the n-th call of a function, or after it."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    whole, calls = getattr(owner, name), 0

    def dies(*words: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == n and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = whole(*words, **more)
        if calls == n:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, dies)
    with suppress(BaseException):
        call("forget", "run", "--user", USER)
    os._exit(0)


@pytest.fixture(scope="module")
def undisturbed(once: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Files of a run from which a user was removed without a kill."""
    run = Path(shutil.copytree(once("small_log", play_small) / "run", tmp_path_factory.mktemp("undisturbed") / "run"))
    call("forget", str(run), "--user", USER)
    return {str(file.relative_to(run)): file.read_bytes() for file in run.rglob("*") if file.is_file()}


@pytest.mark.parametrize("kill", KILLS.values(), ids=KILLS.keys())
def test_a_removal_that_is_killed_is_completed_by_the_next_one(
    folder: Path, undisturbed: dict[str, bytes], kill: tuple[Any, str, int, bool]
) -> None:
    assert killed(*kill) == -signal.SIGKILL
    if (folder / forgetting.MOVING).exists():
        for words in (("report", "run"), ("compare", "run"), ("run", "--check", "run")):
            _, out, err = call(*words)
            assert "the removal of a user was interrupted; complete it: skg-bench forget run --user ID" in out + err
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert code == 0
    assert out.startswith(("run: removed a user", "run: the removal that was interrupted is complete"))
    after = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    assert after.keys() == undisturbed.keys()
    assert {name for name in after if after[name] != undisturbed[name]} <= {
        "report.html",
        "manifest.json",
    }  # the folder
    assert not [file for file in folder.iterdir() if file.name.startswith(".forget")]
    assert call("run", "--check", str(folder))[0] == 0


def test_the_command_of_the_run_never_brings_a_user_back(folder: Path, once: Callable[..., Path]) -> None:
    path = once("small_log", play_small) / "log.csv"
    words = ["simulator=recorded", f"simulator.path={path}", COLUMNS, ARMS, "reference=never", f"out={folder}"]
    old = shards.path(folder, "turns", "all", 0).read_bytes()
    call("forget", str(folder), "--user", USER)
    assert len(set(skg_bench.run(words, progress=False).turns("all", ["user"])["user"].to_pylist())) == 5
    (folder / "report.html").unlink()
    with pytest.raises(
        UsageError, match=r"report.html is missing, and users were removed from run, .* `skg-bench report"
    ):
        skg_bench.run(words, progress=False)
    call("report", str(folder))
    shards.path(folder, "turns", "all", 0).write_bytes(old)
    assert "turns/all.0000000.parquet belongs to another run" in refused("compare", str(folder))
    (folder / "manifest.json").unlink()
    with pytest.raises(UsageError, match="is not empty and holds no run"):
        skg_bench.run(words, progress=False)


def ask(text: str) -> tuple[bytes, Ask, Completion]:
    known = Ask(
        Prompt("reflector", "You learn.", f'```json\n{{"question": {json.dumps(text)}}}\n```', None, 1, 9), SETTINGS
    )
    return known.key, known, Completion(f"of {text}", None, "ok", 1, 0, 1, 0.0, 1.0)


def test_recordings_lose_what_only_this_user_asked(folder: Path, untold: None) -> None:
    mine, theirs = only_of(USER)[0], only_of(OTHER)[0]
    for place in (folder / "asked", Path("outside"), Path("other")):
        Recording(place).add([ask(mine), ask(theirs)])
    Recording(Path("other")).add([ask("nothing of a log")])
    assert call("forget", str(folder), "--user", USER, "--recording", "outside")[0] == 0
    for place in (folder / "asked", Path("outside")):
        assert [fields["user"] for fields in read(place)] == [ask(theirs)[1].prompt.user]
    assert len(list(read(Path("other")))) == 3


def read(folder: Path) -> list[dict[str, str]]:
    recording = Recording(folder)
    recording.refresh()
    return list(recording.asks())


def test_a_recording_elsewhere_is_named(folder: Path, untold: None) -> None:
    run = Run(folder)
    node = {"_target_": "skg_bench.llm.recorded.RecordedModel", "folder": "outside", "llm": {}}
    known = run.manifest["compositions"]
    changed(run, compositions={**known, "all": {**known["all"], "curator": {"llm": node}}})
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert code == 1
    assert "left: recordings in outside may hold messages of this user; --recording outside removes them" in out


def test_a_file_that_somebody_put_there_is_named(folder: Path, untold: None) -> None:
    (folder / "notes.txt").write_text(f"{USER} called again")
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert code == 1
    assert "left: run/notes.txt is no file of the run, and has this name in it" in out


def test_what_others_said_of_the_user_stays_and_is_counted(folder: Path, untold: None) -> None:
    def about(table: pa.Table) -> pa.Table:
        messages = table["message"].cast(pa.string()).to_pylist()
        messages[-1] = f"did {USER} call?"
        column = pa.array(messages, pa.string()).dictionary_encode()
        place = table.column_names.index("message")
        return table.set_column(place, table.schema.field("message"), column)

    for arm in Run(folder).arms:
        rewritten(shards.path(folder, "turns", arm, 0), about)
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert code == 1
    assert "left: 1 text of others with this name in it: what others said stays theirs" in out


def test_users_who_share_a_memory_are_said_to(folder: Path, untold: None) -> None:
    run = Run(folder)
    known = run.manifest["compositions"]
    node = {"_target_": "skg_bench.assistant.python.component.Python", "shares": 4}
    changed(run, compositions={**known, "near": {**known["near"], "assistant": node}})
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert code == 0
    assert "arm near: 4 users share one memory, so what others were answered may be as it is because of this" in out


def test_a_hashed_user_is_found_by_their_name(
    folder: Path, once: Callable[..., Path], bare: None, untold: None
) -> None:
    path = once("small_log", play_small) / "log.csv"
    words = ["simulator=recorded", f"simulator.path={path}", COLUMNS, ARMS, "reference=never", "out=hashed"]
    skg_bench.run([*words, "simulator.redact=true"], progress=False)
    code, out, _ = call("forget", "hashed", "--user", USER)
    assert (code, out.splitlines()[0]) == (0, "hashed: removed a user with 307 turns; 5 users are left")


def test_a_user_of_imported_results_is_removed_too(tiny_run: Run, elsewhere: Path) -> None:
    table = exported(tiny_run, elsewhere / "results.csv")
    call("data", "import", table.name, "--out", "mine", "--reference", "never")
    users = len(set(Run("mine").turns("never", ["user"])["user"].to_pylist()))
    code, out, _ = call("forget", "mine", "--user", "0")
    assert code == 0
    assert f"; {users - 1} users are left" in out
    assert call("compare", "mine", "--metric", "correct")[1].startswith(f"{users - 1} users")


def test_one_user_who_is_left_is_no_plural(elsewhere: Path, untold: None) -> None:
    turns = [f"{user},{event},{arm},{event % 2}" for user in "ab" for event in range(4) for arm in ("mine", "never")]
    (elsewhere / "results.csv").write_text("\n".join(["user,event,arm,right", *turns]) + "\n")
    call("data", "import", "results.csv", "--out", "mine", "--reference", "never")
    code, out, _ = call("forget", "mine", "--user", "a")
    assert (code, "; 1 user is left" in out) == (0, True)
