"""The trial of faults: what it counts, that it can be repeated, and that nothing is lost in it."""

import os
import signal
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from experiments.bench.faults import damage, special
from experiments.bench.faults.analysis import ROWS, TITLE
from experiments.bench.faults.command import Done, Running
from experiments.bench.faults.commands import RECORDED
from experiments.bench.faults.disk import full
from experiments.bench.faults.lab import Bench, Lab
from experiments.bench.faults.outcomes import (
    ENDS,
    End,
    Outcome,
    failures,
    general,
    holds,
    instructs,
    places,
    table,
    worst,
)
from experiments.bench.faults.reader import Reader
from experiments.bench.faults.trials import chosen, report, trials
from skg_bench.app.compose import compose
from skg_bench.app.experiments import ONE_THREAD
from skg_bench.core.errors import UsageError
from skg_bench.core.processes import this_process
from tests.app.test_cli import call, process, refused
from tests.processes import await_end, needs_proc

FINE = Outcome("flip", "a bit flipped", 3, "survived", where="turns", messages=("RUN is torn; it makes it again",))


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the experiment sets it; else the command would take the place of the process that tests."""
    for name, value in ONE_THREAD.items():
        monkeypatch.setenv(name, value)


def ended(end: End, trial: int = 0) -> Outcome:
    return replace(FINE, end=end, trial=trial, reason="turns of learns differs")


def test_a_row_counts_what_was_tried_survived_and_lost_and_quotes_messages() -> None:
    outcomes = [FINE, FINE, ended("lost", 4), ended("hung"), replace(FINE, fault="cut", messages=())]
    flipped, cut = table(outcomes).rows
    assert flipped == ("a bit flipped", "4", "2", "1", "hung: 1; 4 x “RUN is torn; it makes it again”")
    assert cut == ("cut", "1", "1", "0", "none")


@pytest.mark.parametrize("end", ENDS)
def test_the_trial_fails_where_a_figure_changed_unsaid_or_a_command_hung_or_was_wordless(end: End) -> None:
    outcomes = [FINE, ended(end), FINE]
    assert holds(outcomes) == (end in ("survived", "refused"))
    assert report(TITLE, list(ROWS), outcomes, [], 0, "command", 60.0).holds == holds(outcomes)


def test_failures_come_with_what_repeats_them_the_worst_first() -> None:
    outcomes = [FINE, ended("refused", 1), ended("lost", 2)]
    assert [row[:3] for row in failures(outcomes).rows] == [("flip:2", "turns", "lost"), ("flip:1", "turns", "refused")]
    assert places(outcomes).rows == [("a bit flipped", "turns", "3", "1", "1", "0", "0", "0", "1")]
    assert worst([("refused", "a"), ("lost", "b"), ("hung", "c")]) == ("lost", "b")
    assert worst([]) == ("survived", "")


def test_the_page_says_what_was_left_out() -> None:
    page = report(
        TITLE, list(ROWS), [FINE], ["run --check: this version has none"], 0, "skg-bench experiment faults", 60.0
    ).page
    assert "1 trials of seed 0 in 1.0 minutes" in page
    assert "Left out: run --check: this version has none." in page


@pytest.mark.parametrize(
    ("message", "clear"),
    [
        ("runs/a is no run directory: it has no manifest.json", False),
        ("no space left on device; once that is mended, the same command goes on from there", True),
        ("turns/skg.0.parquet is torn; the command that began the run makes it again", True),
        ("out=runs/a holds another run; name another folder", True),
        ("Traceback: OSError: [Errno 5]", False),
    ],
)
def test_a_message_says_what_to_do_or_not(message: str, clear: bool) -> None:
    assert instructs(message) == clear


def test_a_message_of_two_trials_is_the_same_message() -> None:
    paths = {"/home/a/flip-1": "FOLDER", "/home/a/flip-1/run": "RUN"}
    text = "/home/a/flip-1/run/turns/skg.12.parquet has 1,204 rows"
    assert general(text, paths) == "RUN/turns/ARM.K.parquet has N rows"


def test_a_message_of_two_machines_is_the_same_message() -> None:
    host = this_process().host
    assert (
        general(f"run by 12 on host {host}, see .lock.run.{host}.12", {})
        == "run by N on host HOST, see .lock.run.HOST.N"
    )


def test_a_command_says_where_it_failed_and_what_it_made_again() -> None:
    assert Done(2, "", "a line\nerror: torn; run again\n").message == "error: torn; run again"
    assert Done(1, "", "").message == "(nothing, exit code 1)"
    assert Done(0, "shard 3 is torn: it is made again\nlearns wins against never\n", "").remarks == [
        "shard 3 is torn: it is made again"
    ]


def test_rows_and_single_trials_are_chosen(one_thread: None) -> None:
    assert len(chosen(ROWS, [], 1.0)) == sum(row.count for row in ROWS.values()) == 1_000
    assert chosen(ROWS, ["flip:7", "parts"], 0.1) == [("flip", 7), ("parts", 0)]
    with pytest.raises(UsageError, match="--only flipp: there is no such row; rows are parent, "):
        chosen(ROWS, ["flipp"], 1.0)
    with pytest.raises(UsageError, match="give ROW, or ROW:TRIAL with a number"):
        chosen(ROWS, ["flip:x"], 1.0)
    assert "there is no such row" in refused("experiment", "faults", "--only", "nothing")


def bench(lab: Lab, folder: Path, trial: int = 0, row: str = "flip") -> Bench:
    folder.mkdir(exist_ok=True)
    return Bench(lab, Reader(lab.limit, lab.stop), row, trial, folder, ExitStack())


@pytest.mark.parametrize("how", damage.DAMAGES)
def test_damage_is_repeated_by_its_number(how: str, tmp_path: Path) -> None:
    lab, contents, file = Lab(tmp_path, 5, 60.0), list[bytes | None](), tmp_path / "file"
    for trial in (1, 1, 2):
        file.write_bytes(bytes(200))
        damage.damage(bench(lab, tmp_path / f"{trial}", trial, how), file, how)
        contents.append(file.read_bytes() if file.exists() else None)
    assert contents[0] == contents[1] != bytes(200)
    assert (contents[0] == contents[2]) == (how == "removed")


def test_every_file_of_a_run_is_of_a_kind(tmp_path: Path) -> None:
    names = ("manifest.json", "turns/a.0.parquet", "pieces/turns.a.0.parquet", "pieces/checkpoint.a", "summary.json")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    kinds = damage.files(tmp_path)
    assert list(kinds) == ["manifest.json", "turns", "summary.json", "pieces", "checkpoints"]
    assert sorted(file for files in kinds.values() for file in files) == sorted(tmp_path / name for name in names)


@needs_proc
def test_a_command_that_takes_too_long_is_killed_with_all_its_processes(tmp_path: Path) -> None:
    words = ["run", "profile=smoke", "users=40", "cohort=40", "workers=2", f"out={tmp_path / 'run'}"]
    running = Running(words, tmp_path, 0.0, Event())
    try:
        assert running.until(lambda: len(running.workers()) == 2, 60.0)
        workers = running.workers()
        assert running.wait().code is None
    finally:
        running.close()
    await_end(workers)
    assert running.ended


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    prepared = Lab(tmp_path_factory.mktemp("faults"), 0, 60.0, mounts=False, users=24)
    prepared.prepare(twice=False)
    return prepared


@needs_proc
def test_a_small_trial_loses_nothing(lab: Lab, tmp_path: Path) -> None:
    wanted = [("parent", 1), ("flip", 2)]  # the night tries each row
    outcomes = list(trials(ROWS, lab, wanted, 2, 5.0, lambda _: None))
    assert sorted((each.row, each.trial) for each in outcomes) == sorted(wanted)
    assert [each for each in outcomes if each.end != "survived"] == []


def test_the_run_with_a_recording_asks_no_server() -> None:
    composed = compose(RECORDED[1:])
    assert composed.arms["model"]["curator"]["llm"]["_target_"].endswith("RecordedModel")
    assert composed.arms["model"]["curator"]["llm"]["llm"]["_target_"].endswith("Scripted")


@pytest.mark.parametrize("kind", special.KINDS)
def test_what_is_no_file_is_made_and_can_be_removed(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "x" / "thing"
    file.parent.mkdir()
    special.make(file, kind)
    assert os.path.lexists(file)
    assert not file.is_file() or kind == "sparse"
    assert kind != "sparse" or (file.stat().st_size, file.stat().st_blocks) == (10 * 2**30, 0)
    file.rmdir() if kind == "folder" else file.unlink()


@needs_proc
def test_a_folder_in_place_of_a_shard_is_named_with_what_to_do(lab: Lab, tmp_path: Path) -> None:
    trial = bench(lab, tmp_path, special.KINDS.index("folder"), "special")
    with trial.stack:
        outcome = special.special(trial)
    trial.reader.close()
    assert (outcome.end, outcome.reason, outcome.where) == ("survived", "", "folder, a shard")
    assert any("move away what stands there" in message for message in outcome.messages)


@needs_proc
def test_without_a_file_system_of_its_own_a_full_disk_is_a_limit_to_files(lab: Lab, tmp_path: Path) -> None:
    trial = bench(lab, tmp_path, 1, "disk")
    with trial.stack:
        outcome = full(trial)
    assert (outcome.end, outcome.reason) == ("survived", "")
    assert outcome.where.startswith("file size limit")


@pytest.mark.soak
@needs_proc
def test_ctrl_c_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    words = ["experiment", "faults", "--only", "worker", "--only", "flip", "--folder", "runs"]
    with process(words, tmp_path) as running:
        try:
            deadline = time.monotonic() + 90
            while len(trials_begun := list(tmp_path.glob("runs/*/worker-*/run"))) < 2:
                assert running.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=60)
        finally:
            running.kill()
    assert (running.returncode, "Traceback" in err) == (130, False), err
    assert out.startswith("faults")
    assert list((tmp_path / "runs").iterdir()) == []
    commands = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if os.access(file, os.R_OK)]
    assert not [text for text in commands if str(trials_begun[0].parents[1]).encode() in text]


@pytest.mark.soak
def test_the_whole_trial_loses_nothing(one_thread: None, tmp_path: Path) -> None:
    code, out, err = call("experiment", "faults", "--folder", str(tmp_path / "runs"))
    assert code == 0, out + err
