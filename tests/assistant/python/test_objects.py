"""Python objects as assistants: what comes back is known by its references, and memory outside of them is refused."""

import json
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.analysis.summary import read_summary
from skg_bench.engine import checkpoint, execute
from skg_bench.runfolder.run import Run
from tests.app.test_cli import refused
from tests.assistant.plugin import WORLD, run
from tests.laws import world

FILE = Path(__file__).with_name("objects.py")
EVERYONE = range(6)
NEVER = ["policy=never", "curator=none"]


def playing(name: str, *more: str) -> list[str]:
    return ["assistant=python", f"assistant.file={FILE}:{name}", *more]


def unchecked(name: str, *more: str) -> list[str]:
    """Without controls, which play some users five times more."""
    return playing(name, "assistant.controls=false", *more)


def arms(**table: list[str]) -> str:
    return "arms=" + json.dumps(table)


ARMS = {
    "never": NEVER,
    "pass": unchecked("PassOn"),
    "exact": ["router=exact", "curator=everything"],
    "dict": playing("ExactCache"),
    "saves": unchecked("Saving"),
    "waits": unchecked("Waiting"),
    "chatty": unchecked("Chatty"),
    "recalls": unchecked("Recalling"),
    "refresh": unchecked("Refreshing"),
    "listens": unchecked("Listening"),
    "wordless": unchecked("Wordless"),
    "frozen": unchecked("ExactCache", "freeze=all", "freeze_at=60"),
    "thawed": unchecked("Saving", "freeze=all", "freeze_at=60"),
    "fork": playing("ExactCache", "fork=dict@60"),
    "guess": unchecked("Guessing"),
    "quotes": unchecked("Quoting"),
    "prompts": unchecked("PromptingOthers"),
    "cheap": unchecked("Cheap"),
    "placebo": unchecked("Saving", "assistant.scrambled=true"),
}
COMMON = ["user", "turn", "message", "serving", "source_turn", "answer_correct", "cost_usd", "latency_ms", "tokens_in",
          "tokens_out", "user_satisfaction", "offer", "fallback_to_llm", "skill_correct"]  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("runs") / "base", arms(**ARMS), "reference=never")


def rows(made: Run, arm: str, *columns: str) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = made.turns(arm, list(columns or COMMON)).to_pylist()
    return table


def unlike(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> list[Any]:
    return [(a, b) for a, b in zip(one, other, strict=True) if a != b][:1]


def test_passing_on_is_the_same_as_no_assistant_row_by_row(base: Run) -> None:
    assert unlike(rows(base, "never"), rows(base, "pass")) == []


def test_an_empty_prompt_pays_for_the_message_all_the_same(base: Run) -> None:
    assert unlike(rows(base, "never"), rows(base, "cheap")) == []


def test_a_dict_is_the_exact_cache_row_by_row(base: Run) -> None:
    assert Counter(row["serving"] for row in rows(base, "dict"))["stored"] > 100
    assert unlike(rows(base, "exact"), rows(base, "dict")) == []


@pytest.mark.parametrize("arm", ["dict", "refresh", "wordless", "guess", "pass"])
def test_calls_of_the_model_are_counted_as_they_are_paid(base: Run, arm: str) -> None:
    """Once, a call beside an earlier answer was paid and not counted, as was what nobody can judge without a call."""
    paid = sum(row["tokens_in"] > 0 for row in rows(base, arm))
    assert read_summary(base).totals[arm]["call"] == paid


def test_causes_of_words_are_those_of_the_same_answers_from_a_skillbook(base: Run) -> None:
    mine, skills = (rows(base, arm, "serving", "cause") for arm in ("dict", "exact"))
    known = [(a["cause"], b["cause"]) for a, b in zip(mine, skills, strict=True) if a["serving"] == "stored"]
    alike = [(a, b) for a, b in known if b in ("none", "staleness", "wrong_source", "threshold")]
    assert {a for a, _ in known} == {"none", "staleness", "wrong_source", "threshold"}
    assert len(alike) > len(known) / 2
    assert [pair for pair in alike if pair[0] != pair[1]] == []
    assert {row["cause"] for row in mine if row["serving"] == "llm"} == {"capture", "novelty"}
    assert "dict" in read_summary(base).waterfall


def test_hits_of_a_placebo_are_as_many_and_as_old_and_others(base: Run) -> None:
    mine, placebo = rows(base, "dict"), rows(base, "placebo")
    assert [a["serving"] for a in mine] == [b["serving"] for b in placebo]
    fresh = {(row["user"], row["turn"]) for row in mine if row["serving"] == "llm"}
    pairs = [(a, b) for a, b in zip(mine, placebo, strict=True) if a["serving"] == "stored"]
    other = [(a, b) for a, b in pairs if a["source_turn"] != b["source_turn"]]
    assert len(other) > 0.95 * len(pairs)  # but where the user had no other answer
    assert all((b["user"], b["source_turn"]) in fresh for _, b in pairs)
    older = [b["source_turn"] < a["source_turn"] for a, b in other]
    assert 0.3 < sum(older) / len(older) < 0.7
    assert sum(bool(b["answer_correct"]) for _, b in pairs) < sum(bool(a["answer_correct"]) for a, _ in pairs)


def test_a_leak_is_a_cause_of_its_own(base: Run) -> None:
    made = rows(base, "guess", "serving", "cause")
    assert {row["cause"] for row in made if row["serving"] == "leaked"} == {"routing"}
    assert ">Leak<" in (base.path / "report.html").read_text("utf-8")


@pytest.mark.parametrize("arm", ["saves", "waits", "chatty", "fork"])
def test_words_around_an_answer_waiting_saving_and_a_fork_change_nothing(base: Run, arm: str) -> None:
    assert unlike(rows(base, "dict"), rows(base, arm)) == []


def test_earlier_answers_in_the_prompt_are_known(base: Run) -> None:
    made = rows(base, "recalls")
    assert {row["serving"] for row in made if row["turn"] > 0} == {"prompted"}
    assert {row["serving"] for row in made if row["turn"] == 0} == {"llm"}
    never = rows(base, "never")
    dear = [a["cost_usd"] > b["cost_usd"] for a, b in zip(made, never, strict=True) if a["turn"] > 0]
    assert all(dear)


@pytest.mark.usefixtures("bare")
def test_one_memory_has_one_price_however_its_prompts_are_written(tmp_path: Path) -> None:
    """Once a prompt cost its blanks and one: with tabs for blanks, or with references alone, it came out better."""
    spelled = ("blanks", "oldest", "lines", "tabs", "glued", "bare", "twice", "chat")
    table = {each: unchecked("LastThree", f"assistant.parameters.spelled={each}") for each in spelled}
    control = ["assistant=recall", "assistant.recalls=last", "assistant.last=3"]
    made = run(tmp_path / "run", arms(never=NEVER, control=control, **table), "reference=never")
    whole = rows(made, "blanks")
    assert sum(row["serving"] == "prompted" for row in whole) > 0.9 * len(whole)
    assert [(each, difference) for each in spelled for difference in unlike(whole, rows(made, each))] == []
    assert unlike(rows(made, "control"), whole) == []


def test_an_answer_that_was_kept_and_not_given_is_known_when_it_comes(base: Run) -> None:
    made, turns = rows(base, "refresh"), dict[tuple[int, str], int]()
    for row in made:
        before = turns.get((row["user"], row["message"]))
        assert (row["serving"], row["source_turn"]) == (("llm", -1) if before is None else ("stored", before))
        assert row["cost_usd"] > 0
        turns[row["user"], row["message"]] = row["turn"]
    assert any(row["answer_correct"] for row in made if row["serving"] == "stored")


def test_feedback_reaches_the_object_with_the_words_that_it_is_about(base: Run) -> None:
    heard, deaf = (Counter(row["serving"] for row in rows(base, arm)) for arm in ("listens", "dict"))
    assert 0 < heard["stored"] < deaf["stored"]


def test_words_without_a_reference_are_not_judged_and_the_others_are(base: Run) -> None:
    unjudged = {row["turn"] for row in rows(base, "wordless") if row["answer_correct"] is None}
    assert unjudged
    assert all(turn % 50 == 49 for turn in unjudged)


@pytest.mark.parametrize("arm", ["frozen", "thawed"])
def test_a_frozen_object_remembers_nothing_of_what_comes_after(base: Run, arm: str) -> None:
    live, frozen = rows(base, "dict"), rows(base, arm)
    assert unlike([row for row in live if row["turn"] < 60], [row for row in frozen if row["turn"] < 60]) == []
    later = [row for row in frozen if row["turn"] >= 60]
    assert max(row["source_turn"] for row in later) < 60
    assert any(row["source_turn"] >= 0 for row in later)
    assert max(row["source_turn"] for row in live) > 60


def test_the_reference_of_an_answer_that_was_never_given_is_a_leak_and_wrong(base: Run) -> None:
    made = rows(base, "guess")
    assert {(row["serving"], row["answer_correct"], row["fallback_to_llm"], row["cost_usd"]) for row in made} == {
        ("leaked", False, False, 0.0)
    }
    rated = Counter(row["user_satisfaction"] for row in made)
    assert rated["miss"] > rated["ok"]


@pytest.mark.parametrize("arm", ["quotes", "prompts"])
def test_an_answer_of_somebody_else_is_a_leak_in_front_of_a_new_one_and_in_a_prompt(base: Run, arm: str) -> None:
    """The model is asked all the same: it costs, and its answer is one that the assistant has."""
    made = rows(base, arm, "serving", "answer_correct", "cost_usd")
    assert {(row["serving"], row["answer_correct"]) for row in made} == {("leaked", False)}
    assert all(row["cost_usd"] > 0 for row in made)
    assert f">{arm}</code> LEAKS: {len(made):,} of {len(made):,} answers" in (base.path / "report.html").read_text(
        "utf-8"
    )


@pytest.mark.usefixtures("bare")
def test_cohorts_and_workers_change_no_row(base: Run, tmp_path: Path) -> None:
    some = {name: ARMS[name] for name in ("never", "waits", "listens")} | {"dict": unchecked("ExactCache")}
    other = run(tmp_path / "other", arms(**some), "reference=never", "cohort=3", "workers=2")
    assert world.differences(base, other, EVERYONE, list(some)) == []


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("name", ["saves", "dict"])
def test_a_run_that_is_stopped_goes_on_to_the_same_rows(
    base: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Memory that can be saved goes on from a checkpoint; of other memory there is none, and it begins anew."""
    written = list[Path]()
    write = checkpoint._write

    def stopping(path: Path, *more: Any) -> None:
        write(path, *more)
        written.append(path)
        if len(written) == 50:
            raise KeyboardInterrupt

    it = unchecked({"saves": "Saving", "dict": "ExactCache"}[name])
    table = arms(**{name: it}), f"reference={name}", "workers=1"
    with monkeypatch.context() as patch:
        patch.setattr(execute, "CHECKPOINT", 0.0)
        patch.setattr(checkpoint, "_PATIENCE", 0)
        patch.setattr(checkpoint, "_write", stopping)
        with pytest.raises(KeyboardInterrupt) if name == "saves" else nullcontext():
            run(tmp_path / "run", *table)
    assert len(written) == (50 if name == "saves" else 0)
    assert unlike(rows(base, name), rows(run(tmp_path / "run", *table), name)) == []


# --------------------------------------------------------------------------------------------- what is refused


def wrong(tmp_path: Path, *texts: str, more: tuple[str, ...] = ()) -> str:
    table = arms(never=NEVER, it=list(texts))
    return " ".join(refused("run", *WORLD, *more, table, "reference=never", f"out={tmp_path / 'run'}").split())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("NoAnswer", "has no method answer; valid is answer(self, user, time, message, model) -> str"),
        ("Short", "too many positional arguments; wanted: answer(self, user, time, message, model)"),
        ("Nothing", ".answer of arm 'it', user 2, turn 0: it returned None; valid is a str"),
        ("Bytes", ".answer of arm 'it', user 2, turn 0: it returned a bytes; valid is a str"),
        ("Failing", "of arm 'it', user 3, turn 99: it raised ValueError: the disk is full"),
        ("Missing", "has no class 'Missing'; its classes are PassOn, Choosy, ExactCache"),
    ],
)
def test_what_goes_wrong_is_named_with_arm_user_and_turn(tmp_path: Path, name: str, reason: str) -> None:
    assert reason in wrong(tmp_path, *playing(name))


@pytest.mark.parametrize("cohort", [5, 512])
def test_memory_outside_of_the_objects_is_refused_and_gives_no_figure(tmp_path: Path, cohort: int) -> None:
    file = tmp_path / "mine.py"  # read anew, without the memory of another run of this process
    file.write_text(FILE.read_text("utf-8"), "utf-8")
    message = wrong(tmp_path, "assistant=python", f"assistant.file={file}:ForAll", more=(f"cohort={cohort}",))
    assert "Keep all memory in the object (self)" in message
    assert not list((tmp_path / "run").glob("*.json"))[1:]


def test_memory_elsewhere_that_begins_late_is_found_when_the_run_ends(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE.read_text("utf-8"), "utf-8")
    late = ["assistant=python", f"assistant.file={file}:LateForAll"]
    message = wrong(tmp_path, *late)
    assert "In the run it had no such fault, with the same users" in message
    assert "Keep all memory in the object (self)" in message
    assert not (tmp_path / "run" / "summary.json").exists()
    again = wrong(tmp_path, *late)  # all shards are there
    assert "LateForAll" in again


@pytest.mark.parametrize("name", ["ForgetsWhenSaved", "RemembersWhenFrozen"])
def test_a_memory_that_saving_or_freezing_changes_is_refused(tmp_path: Path, name: str) -> None:
    message = wrong(tmp_path, *playing(name))
    assert f"{name}" in message
    assert "its memory was frozen for one message more, then saved and loaded" in message


def test_an_object_that_answers_otherwise_when_it_is_played_again_is_refused(tmp_path: Path) -> None:
    assert "was played twice with the same users, and answered otherwise" in wrong(tmp_path, *playing("Unlike"))


def test_an_object_that_cannot_be_copied_is_not_frozen(tmp_path: Path) -> None:
    message = wrong(tmp_path, *playing("Locked", "freeze=all", "freeze_at=5"))
    assert "freeze needs a memory that can be copied" in message
    assert "has no save and load, and copy.deepcopy fails: TypeError" in message


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["assistant=python"], "was given neither of target and file"),
        (["assistant=python", "assistant.target=no.such.Thing"], "assistant.target='no.such.Thing' cannot be imported"),
        (["assistant=python", "assistant.target=json.dumps"], "is a function; valid is a class"),
        (["assistant=python", "assistant.file=objects.py"], "must read FILE:CLASS, such as my.py:ExactCache"),
        (["assistant=python", "assistant.file=gone.py:Gone"], "gone.py"),
        (playing("PassOn", "assistant.parameters={size: 3}"), "cannot be made: TypeError"),
        (playing("Choosy"), "objects.py:Choosy cannot be made: TypeError: Choosy.__init__() missing 1 required"),
        (playing("Choosy"), "argument: 'size'; it is called without arguments"),
        (playing("PassOn", "assistant.shares=everyone"), "assistant.shares='everyone' must be"),
    ],
)
def test_a_class_that_is_not_there_is_refused_by_name(tmp_path: Path, texts: list[str], reason: str) -> None:
    assert reason in wrong(tmp_path, *texts)


@pytest.mark.usefixtures("bare")
def test_the_text_of_the_file_is_part_of_the_identity(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    identities = list[str]()
    for comment in ("", "# changed\n"):
        file.write_text(f"{comment}{FILE.read_text('utf-8')}", "utf-8")
        table = arms(never=NEVER, it=["assistant=python", f"assistant.file={file}:PassOn", "assistant.controls=false"])
        small = ("reference=never", "users=2", "weeks=1")
        identities.append(run(tmp_path / f"run{len(identities)}", table, *small).manifest["identity"])
    assert len(set(identities)) == 2


def test_references_lead_back_to_the_number_of_their_event() -> None:
    from skg_bench.core.draws import fold, key, unfolded

    keys, numbers = key(3, np.arange(200)), np.arange(-100, 100) * 7**20
    assert (unfolded(keys, fold(keys, numbers)) == numbers).all()
