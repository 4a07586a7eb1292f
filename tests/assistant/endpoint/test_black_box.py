"""Systems that are started beside a run: identities, kills, cohorts, workers, and bad days."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import skg_bench
from skg_bench.app.building import build
from skg_bench.app.compose import compose, composer
from skg_bench.app.launch import prepare
from skg_bench.app.overrides import parse
from skg_bench.app.trust import COMMAND_LINE, FromFile, admitted
from skg_bench.core.errors import UsageError
from skg_bench.embedder.precomputed import Precomputed
from skg_bench.runfolder.run import Run
from tests.app.test_cli import ROOT
from tests.runs import logs_alone

SYSTEMS = Path(__file__).parents[1] / "systems"
WORLD = (
    "profile=smoke", "users=3", "weeks=1", "simulator.one_off_share=0.1", "simulator.concentration=1",
    "simulator.discount=0", "reference=never",
)  # fmt: skip
ROWS = (
    "serving",
    "source_turn",
    "answer_correct",
    "user_satisfaction",
    "tokens_in",
    "cost_usd",
    "latency_ms",
    "utility",
)


def system(script: str, *more: str, **config: object) -> list[str]:
    """Overrides of an arm with a system of this folder."""
    text = json.dumps({"port": "{port}", "upstream": "{upstream}", "key": "{key}", **config})
    command = f"assistant.command=[{sys.executable}, {SYSTEMS / script}.py, '{{folder}}/config.json']"
    return ["assistant=endpoint", command, f"assistant.files={{config.json: '{text}'}}", *more]


def table(**arms: list[str]) -> str:
    return "arms={" + ", ".join(f"{name}: {json.dumps(texts)}" for name, texts in arms.items()) + "}"


NEVER, EXACT = ["policy=never"], ["router=exact", "curator=everything", "policy=always"]
FREEZE = ["freeze=all", "freeze_at=20"]
STAND_INS = {
    "pass_on": system("pass_on"),
    "dict": system("exact"),
    "gptcache": system("semantic", "assistant.controls=false", threshold=0.9, rule="half"),  # those of `dict`
    "litellm": system("semantic", "assistant.controls=false", threshold=0.8, rule="cosine"),
}


def run(out: Path, *overrides: str, **arms: list[str]) -> Run:
    """A run without tables and page."""
    with logs_alone():
        return whole(out, *overrides, **arms)


def whole(out: Path, *overrides: str, **arms: list[str]) -> Run:
    return skg_bench.run([*WORLD, *overrides, table(never=NEVER, **arms), f"out={out}"])


def rows(made: Run, arm: str) -> dict[str, list[object]]:
    columns = [name for name in ROWS if name in made.turns(arm).column_names]
    return {name: made.turns(arm, [name])[name].to_pylist() for name in columns}


@pytest.fixture(scope="module")
def made(once: Callable[..., Path]) -> Run:
    return Run(once("black_box", lambda folder: whole(folder, exact=EXACT, **STAND_INS)))


# ------------------------------------------------------------------------------------------------ identities


def test_a_run_is_known_by_the_files_that_start_a_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, who changed the program got the figures of before, as those of a finished run."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("FIRST")
    Path("rules.json").write_text("{}")
    command = f"assistant.command=[{sys.executable}, mine.py, '--rules=rules.json', --port, '{{port}}', absent.py]"

    def identity() -> str:
        return prepare(compose([*WORLD, table(never=NEVER, mine=["assistant=endpoint", command])])).identity

    first = identity()
    assert identity() == first
    Path("mine.py").write_text("SECOND")
    second = identity()
    Path("rules.json").write_text("[]")
    assert len({first, second, identity()}) == 3
    Path("mine.py").write_text("FIRST")
    Path("rules.json").write_text("{}")
    assert identity() == first
    Path("unused.py").write_text("")
    assert identity() == first
    Path("mine.py").write_text("import beside, json")
    Path("beside.py").write_text("from tools import words")
    Path("tools").mkdir()
    Path("tools/words.py").write_text("import mine")  # in a circle
    seen = [identity()]
    for changed in ("beside.py", "tools/words.py", "tools/prompt.txt"):
        Path(changed).write_text("import tools  # changed")
        seen.append(identity())
    assert len({first, *seen}) == 5


def test_a_system_that_passes_on_is_never_row_by_row(made: Run) -> None:
    assert rows(made, "pass_on") == rows(made, "never")


def test_a_dict_is_the_exact_cache_of_ours(made: Run) -> None:
    ours, theirs = rows(made, "exact"), rows(made, "dict")
    for name in ("serving", "source_turn", "answer_correct"):
        assert ours[name] == theirs[name]
    assert ours["serving"].count("stored") > 10


def test_two_scales_of_one_cosine_are_one_rule_and_find_more_than_equal_words(made: Run) -> None:
    assert rows(made, "gptcache") == rows(made, "litellm")
    hits = [rows(made, arm)["serving"].count("stored") for arm in ("gptcache", "dict")]
    assert hits[0] > hits[1]


def test_the_nearest_message_from_a_cosine_is_found_as_with_twelve_lines_of_numpy(made: Run) -> None:
    turns = made.turns("gptcache", ["user", "turn", "message", "source_turn"]).to_pylist()
    vectors = Precomputed(None).embed([row["message"] for row in turns]).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    books: dict[int, list[int]] = {}
    for i, row in enumerate(turns):
        book = books.setdefault(row["user"], [])
        cosines = vectors[book] @ vectors[i]
        hit = bool(book) and cosines.max() >= 0.8 - 1e-9
        assert row["source_turn"] == (turns[book[int(cosines.argmax())]]["turn"] if hit else -1)
        if not hit:
            book.append(i)


# ------------------------------------------------------------------------------------------------ what changes nothing


def test_cohorts_and_workers_change_nothing(made: Run, tmp_path: Path) -> None:
    some = {arm: [*STAND_INS[arm], "assistant.controls=false"] for arm in ("dict", "litellm")}  # as those of `made`
    again = run(tmp_path / "again", "cohort=2", "workers=2", **some)
    for arm in some:
        assert rows(again, arm) == rows(made, arm)


def processes(marker: str) -> list[int]:
    """Process ids whose command line holds a text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_systems_die_with_a_run_that_is_killed_and_the_same_command_ends_it(made: Run, tmp_path: Path) -> None:
    out, slow = tmp_path / "killed", SYSTEMS / f"slow_{os.getpid()}_{tmp_path.name}.py"
    script = (
        (SYSTEMS / "exact.py").read_text("utf-8").replace("key = ", "import asyncio; await asyncio.sleep(0.1); key = ")
    )
    slow.write_text(script, "utf-8")
    try:
        arms = {"dict": system(slow.stem)}
        words = [sys.executable, "-m", "skg_bench", "run", *WORLD, table(never=NEVER, **arms), f"out={out}"]
        with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
            until = time.monotonic() + 60
            while not processes(slow.name) and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(1.0)  # it answers
            assert processes(slow.name)
            killed.send_signal(signal.SIGKILL)
        until = time.monotonic() + 10
        while processes(slow.name) and time.monotonic() < until:
            time.sleep(0.05)
        assert processes(slow.name) == []
        slow.write_text((SYSTEMS / "exact.py").read_text("utf-8"), "utf-8")
        assert rows(run(out, **arms), "dict") == rows(made, "dict")
    finally:
        slow.unlink()


def test_the_key_is_in_no_file_of_a_run(made: Run) -> None:
    key = re.compile(rb"sk-[0-9a-f]{48}")
    assert [path for path in made.path.rglob("*") if path.is_file() and key.search(path.read_bytes())] == []


@pytest.fixture(scope="session")
def frozen(once: Callable[..., Path]) -> Run:
    """A run of the cache, and of it frozen."""
    arm = system("exact", "assistant.frozen={store: false}", *FREEZE)
    return Run(once("frozen_system", lambda folder: run(folder, dict=system("exact"), frozen=arm)))


def test_a_frozen_arm_sends_the_body_from_which_nothing_is_learned(made: Run, frozen: Run, tmp_path: Path) -> None:
    turns = frozen.turns("frozen", ["turn", "source_turn", "serving"]).to_pylist()
    assert any(row["serving"] == "stored" and row["turn"] > 20 for row in turns)
    assert max(row["source_turn"] for row in turns) < 20
    assert rows(frozen, "dict") == rows(made, "dict")
    with pytest.raises(UsageError, match=r"assistant.frozen is empty"):
        run(tmp_path / "refused", frozen=system("exact", *FREEZE))


# ------------------------------------------------------------------------------------------------ bad days


@pytest.mark.parametrize(
    ("day", "at", "words"),
    [
        ("html", 0, r"no chat completion .*<html>Welcome!"),
        ("half", 5, r"closed before the answer was whole"),
        ("stream", 5, r"closed before the answer was whole"),
        ("500", 5, r"HTTP 500: 'oops'"),
        ("429", 5, r"HTTP 429: 'later'"),
        ("dies", 5, r"ended with exit code 3; the end of its output:\nout of luck, with \{key\}"),
        ("hangs", 5, r"no answer came within assistant.seconds=1"),
        ("never asks", 0, r"answers without asking its model, which stands at http://127.0.0.1:\d+/v1"),
        ("asks twice", 5, r"asked its model twice with the same request"),
    ],
)
def test_a_system_with_a_bad_day_is_named_with_arm_user_and_turn(tmp_path: Path, day: str, at: int, words: str) -> None:
    bad = system("bad_day", "assistant.seconds=1", day=day, at=at)
    with pytest.raises(UsageError, match=words) as raised:
        run(tmp_path / "bad", bad=bad)
    assert re.search(r"the system of assistant=endpoint of arm 'bad', user \d+, turn \d+: ", str(raised.value))


def test_a_reference_that_nobody_gave_is_no_answer_of_this_user(tmp_path: Path) -> None:
    turns = run(tmp_path / "guesses", bad=system("bad_day", "assistant.controls=false", day="guesses", at=5)).turns(
        "bad"
    )
    assert turns["serving"].to_pylist().count("leaked") > 10


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (system("exact", limit=20), r"depends on who else is there: user \d+, turn \d+.*by what assistant.body sends"),
        (system("bad_day", day="own memory", at=0, file="{file}"), r"answered otherwise the second time"),
    ],
)
def test_a_memory_with_one_limit_for_all_users_and_that_of_another_instance_are_refused(
    tmp_path: Path, bad: list[str], words: str
) -> None:
    bad = [text.replace("{file}", str(tmp_path / "kept.json")) for text in bad]
    with pytest.raises(UsageError, match=words):
        run(tmp_path / "refused", bad=bad)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            "assistant.command=[no_such_program]",
            r"exit code 127; the end of its output:\nno_such_program: No such file",
        ),
        (
            f"assistant.command=[{sys.executable}, -c, 'raise SystemExit(4)']",
            r"does not start: it ended with exit code 4",
        ),
        ("assistant.ready=/nowhere", r"did not answer at http://127.0.0.1:\d+/nowhere within 2 s"),
        ("assistant.command=null", r"given neither of url and command"),
        ("assistant.url=http://127.0.0.1:1", r"given both of url and command"),
        ("assistant.command=[a, '{key}']", r"\{key\} is filled into files only"),
        ("assistant.files={../a: b}", r"leads out of the folder"),
        ("assistant.at_once=0", r"at_once=0 must be at least 1"),
        ("assistant.shares=nobody", r"assistant.shares='nobody' must be"),
    ],
)
def test_what_cannot_start_is_refused_with_what_to_do(tmp_path: Path, change: str, words: str) -> None:
    hung = ["assistant=endpoint", f"assistant.command=[{sys.executable}, -c, 'import time; time.sleep(60)']"]
    hung += ["assistant.starts=2", change]
    with pytest.raises(UsageError, match=words):
        run(tmp_path / "refused", bad=hung)


def test_a_run_without_a_system_is_refused_before_it_begins() -> None:
    with pytest.raises(UsageError, match=r"given neither of url and command"):
        prepare(compose([*WORLD, table(never=NEVER, mine=["assistant=endpoint"])]))


def test_a_system_that_runs_is_on_this_machine_and_knows_where_its_model_is(tmp_path: Path) -> None:
    def words(*overrides: str) -> str:
        with pytest.raises(UsageError) as raised:
            run(tmp_path / "refused", bad=["assistant=endpoint", *overrides])
        return str(raised.value)

    assert "system on this machine" in words("assistant.url=http://example.org")
    for url in "http://127.0.0.1:4000/x", "https://127.0.0.1:4000":
        assert "nothing or /v1 behind them" in words(f"assistant.url={url}")
    assert "assistant.port=4001" in words("assistant.url=http://127.0.0.1:4000")
    more = ["assistant.url=http://127.0.0.1:4000", "assistant.port=0"]
    assert "take assistant.controls=false" in words(*more, "assistant.key_from=GATEWAY_KEY")
    more.append("assistant.controls=false")
    assert "Never write a key itself" in words(*more, "assistant.key_from=sk-1234")
    assert "is not set" in words(*more, "assistant.key_from=NO_SUCH_KEY")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (STAND_INS["dict"], r"assistant.command=.* runs code with your rights"),
        (["assistant=endpoint", "assistant.url=http://127.0.0.1:4000"], r"assistant.url=.* reaches an address"),
    ],
)
def test_a_file_of_somebody_else_starts_nothing_and_sends_nothing(change: list[str], words: str) -> None:
    node = compose([*WORLD, table(never=NEVER, mine=change)]).arms["mine"]["assistant"]
    with pytest.raises(UsageError, match=words):
        admitted(FromFile("case.json", trusted=False), [("assistant", "assistant", node)])


def test_a_checkpoint_with_a_memory_that_no_system_saved_is_none() -> None:
    """`Keeper.resumed` takes a ValueError for a bad checkpoint, whose users begin anew."""
    box = build("assistant", composer().root(parse(["assistant=endpoint"]))["assistant"], COMMAND_LINE)
    with pytest.raises(ValueError, match="no memory that could be saved"):
        box.loaded({}, 1)
