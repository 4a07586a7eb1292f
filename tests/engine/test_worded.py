"""Answers in words: what the model is asked, what is said again, what it costs, and that no prompt knows the future."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skg_bench
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.asking.prompts import PROMPTS, load_prompt
from skg_bench.core.arms import Arm
from skg_bench.core.errors import UsageError
from skg_bench.core.spoken import WordsAsk
from skg_bench.core.types import Completions
from skg_bench.engine.execute import execute
from skg_bench.engine.plan import Plan
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from skg_bench.simulator.told.codes import codes_in
from tests.laws import world
from tests.runs import logs_alone, save

pytestmark = pytest.mark.usefixtures("bare")
SIZE = ["simulator=told", "users=6", "weeks=2", "workers=1", "simulator.rated=1", "simulator.changes=0.8", "salt=0",
        "simulator.asks_per_week=15"]  # fmt: skip
ARMS = (
    "arms={never: [policy=never, curator=none], everything: [assistant=recall], last: [assistant=recall, "
    "assistant.recalls=last, assistant.last=5], oracle: [assistant=recall, assistant.recalls=about], "
    "stored: [curator=everything, policy.threshold=0.6], book: [serving=prompted, router=recipe, curator=everything], "
    "exact: [router=exact, curator=everything, policy=always], forked: [fork=book@12, curator=none]}"
)
NOTES = '''
class Notes:
    def __init__(self): self.kept = []
    def answer(self, user, time, message, model):
        words = model("\\n".join([*reversed(self.kept), message]))
        if not message.endswith("?"): self.kept.append(message)
        return words
    def save(self): return "\\n".join(self.kept).encode()
    def load(self, user, data): self.kept = data.decode().split("\\n") if data else []

class Hears:
    def __init__(self): self.kept = []
    def answer(self, user, time, message, model): return model("\\n".join([*self.kept, message]))
    def feedback(self, user, about, kind, value): self.kept.append(f"{about} {value}")

class Parrot:
    """Answers questions by heart, from words that it once got, and asks for nothing twice."""
    def __init__(self): self.words = {}
    def answer(self, user, time, message, model):
        if message not in self.words: self.words[message] = model(message)
        return self.words[message]
'''


PASSES_ON = """
class On:
    def answer(self, user, time, message, model): return model(message)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    with logs_alone():
        return skg_bench.run([*SIZE, ARMS, "reference=never", f"out={tmp_path_factory.mktemp('told') / 'run'}"])


def plan(*more: str) -> Plan:
    return prepare(compose([*SIZE, *more])).plan


def refused(*more: str) -> str:
    with pytest.raises(UsageError) as error:
        plan(*more)
    return str(error.value)


def rows(run: Run, arm: str) -> Any:
    return run.turns(arm).to_pandas()


def test_without_a_memory_nothing_is_known_and_with_all_of_it_everything(run: Run) -> None:
    for arm in run.arms:
        turns = rows(run, arm)
        told, not_told = (turns[turns["need"] == need] for need in ("told", "not_told"))
        assert len(told) > 50
        assert len(not_told) > 20
        assert (not_told["states"] == "nothing").all()
        assert (turns["answer_correct"] == turns["states"].isin(["right"]).where(turns["need"] == "told", True)).all()
        recall = (told["states"] == "right").mean()
        assert recall == {"never": 0.0, "everything": 1.0, "oracle": 1.0}.get(arm, recall)
    shares = {arm: (rows(run, arm)["states"] == "right").mean() for arm in run.arms}
    assert shares["never"] < shares["last"] < shares["everything"]
    assert 0 < shares["book"] < shares["everything"]


def test_words_that_are_given_again_are_judged_at_each_event(run: Run) -> None:
    turns = rows(run, "exact")
    again = turns[turns["serving"] == "stored"]
    first = turns.set_index(["user", "turn"])["said"]
    assert len(again) > 30
    assert (
        again["said"] == [first[user, turn] for user, turn in zip(again.user, again.source_turn, strict=True)]
    ).all()
    outcomes = {
        (user, message): set(each["answer_correct"]) for (user, message), each in again.groupby(["user", "message"])
    }
    assert {True, False} in outcomes.values()  # right until the code was told, wrong from then on
    assert set(again["latency_ms"]) == {50.0}
    assert not again["cost_usd"].any()


@pytest.mark.req("P18")
def test_forks_cohorts_workers_and_other_arms_change_no_bit(run: Run, tmp_path: Path) -> None:
    again = skg_bench.run([*SIZE, ARMS, "reference=never", "cohort=3", f"out={tmp_path / 'again'}"])
    assert world.differences(run, again, range(6)) == []
    alone = skg_bench.run([*SIZE, "arms={book: [serving=prompted,router=recipe,curator=everything]}", "reference=book",
                           f"out={tmp_path / 'alone'}"])  # fmt: skip
    assert world.differences(alone, run, range(6), ["book"]) == []
    book, forked = rows(run, "book"), rows(run, "forked")
    before = book["turn"] < 12
    assert (book["said"].astype(str) == forked["said"].astype(str))[before].all()
    assert (book["said"].astype(str) != forked["said"].astype(str))[~before].any()


def test_a_notebook_of_somebody_else_is_judged_by_its_words_too(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(NOTES)
    arms = f"arms={{notes: [assistant=python, assistant.file={tmp_path / 'notes.py'}:Notes], never: [policy=never]}}"
    run = skg_bench.run([*SIZE, arms, "reference=never", "users=3", f"out={tmp_path / 'run'}"])
    turns = rows(run, "notes")
    assert (turns.loc[turns["need"] == "told", "states"] == "right").all()
    assert set(turns["serving"]) == {"llm"}


def test_feedback_is_about_the_words_that_were_said(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(NOTES)
    arms = f"arms={{heard: [assistant=python, assistant.file={tmp_path / 'notes.py'}:Hears, assistant.controls=false], "
    _, model = witnessed(tmp_path / "run", "So it is.", f"{arms}never: [policy=never]}}", "users=2", "weeks=3")
    prompts = [ask.about.message for ask in model.asks]
    before = [line for prompt in prompts for line in prompt.split("\n")[:-1]]
    assert len(before) > 1000
    assert set(before) == {"So it is. ok", "So it is. miss"}


def test_an_assistant_that_only_passes_messages_on_is_the_same_as_none(tmp_path: Path) -> None:
    (tmp_path / "on.py").write_text(PASSES_ON)
    arms = f"arms={{passes: [assistant=python, assistant.file={tmp_path / 'on.py'}:On], never: [policy=never]}}"
    run = skg_bench.run([*SIZE, arms, "reference=never", "users=3", "weeks=2", f"out={tmp_path / 'run'}"])
    one, other = (run.turns(arm).to_pandas() for arm in ("passes", "never"))
    for column in ("said", "answer_correct", "tokens_in", "tokens_out", "cost_usd", "latency_ms", "serving"):
        assert (one[column].astype(str) == other[column].astype(str)).all(), column


CHEATS = """
class Clears:
    def answer(self, user, time, message, model):
        words = model(message)
        model.prompts.clear()
        return words

class Past:
    def answer(self, user, time, message, model): return model._say(message)

class Leaves:
    def answer(self, user, time, message, model): raise SystemExit(0)

class Blank:
    def answer(self, user, time, message, model): return " "
"""


@pytest.mark.parametrize(
    ("name", "more", "says"),
    [
        ("Clears", (), "raised AttributeError"),
        ("Past", (), "was asked past the `model` of the message, so that nobody would pay for it"),
        ("Leaves", (), "raised SystemExit: 0"),
        ("Blank", ("assistant.scrambled=true",), "scrambled=true exchanges answers by their references"),
    ],
)
def test_an_assistant_that_would_not_pay_or_end_the_run_is_named(
    name: str, more: Sequence[str], says: str, tmp_path: Path
) -> None:
    (tmp_path / "cheats.py").write_text(CHEATS)
    chosen = ", ".join([f"assistant.file={tmp_path / 'cheats.py'}:{name}", "assistant.controls=false", *more])
    arms = f"arms={{mine: [assistant=python, {chosen}], never: [policy=never]}}"
    with pytest.raises(UsageError, match=re.escape(says)):
        skg_bench.run([*SIZE, arms, "reference=never", "users=1", "weeks=1", f"out={tmp_path / 'run'}"])


def test_words_that_show_nothing_are_no_answer(tmp_path: Path) -> None:
    (tmp_path / "cheats.py").write_text(CHEATS)
    arms = f"arms={{mine: [assistant=python, assistant.file={tmp_path / 'cheats.py'}:Blank], never: [policy=never]}}"
    run = skg_bench.run([*SIZE, arms, "reference=never", "users=2", "weeks=1", f"out={tmp_path / 'run'}"])
    assert not rows(run, "mine")["answer_correct"].any()
    assert rows(run, "mine")["said"].isna().all()


def test_a_frozen_history_ends_where_it_was_frozen(tmp_path: Path) -> None:
    arms = (
        "arms={all: [assistant=recall], frozen: [assistant=recall, freeze=all, freeze_at=9], never: [policy=never], "
        "last: [assistant=recall, assistant.recalls=last, assistant.last=9, freeze=all, freeze_at=9]}"
    )
    run = skg_bench.run([*SIZE, arms, "reference=never", "users=2", f"out={tmp_path / 'run'}"])
    live, frozen, last = (rows(run, arm) for arm in ("all", "frozen", "last"))
    before = live["turn"] <= 9
    assert (live["said"].astype(str) == frozen["said"].astype(str))[before].all()
    assert (frozen["states"] == "right").sum() < (live["states"] == "right").sum()
    # the last nine of nine are all of them, however long ago they were frozen
    assert (last["said"].astype(str) == frozen["said"].astype(str)).all()
    assert (last["tokens_in"] == frozen["tokens_in"]).all()


def test_words_from_memory_are_no_call_and_cost_what_an_earlier_answer_costs(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(NOTES)
    arms = f"arms={{parrot: [assistant=python, assistant.file={tmp_path / 'notes.py'}:Parrot], never: [policy=never]}}"
    run = skg_bench.run([*SIZE, arms, "reference=never", "users=3", f"out={tmp_path / 'run'}"])
    turns = rows(run, "parrot")
    again = turns["serving"] == "stored"
    assert again.any()
    assert (again == turns.duplicated(["user", "message"])).all()
    assert not turns.loc[again, "cost_usd"].any()
    assert (turns.loc[~again, "cost_usd"] > 0).all()
    assert (turns.loc[again & (turns["need"] == "told"), "states"] == "nothing").all()


# --------------------------------------------------------------------------------------------- what a prompt knows


@dataclass(frozen=True, eq=False)
class Witness:
    """A model that answers with nothing it was not told, and notes all that it is asked."""

    asks: list[WordsAsk] = field(default_factory=list)
    words: str = "I do not know."

    def say(self, asks: Sequence[WordsAsk]) -> tuple[list[str], Completions]:
        self.asks.extend(asks)
        n = len(asks)
        return [self.words] * n, Completions(np.ones(n, np.int32), np.ones(n, np.int32), np.full(n, 0.5), np.ones(n))


def witnessed(folder: Path, words: str = "I do not know.", arms: str = ARMS, *more: str) -> tuple[Run, Witness]:
    made, model = prepare(compose([*SIZE, arms, "reference=never", *more])), Witness(words=words)

    def asking(arm: Arm) -> Arm:
        fork = None if arm.fork is None else replace(arm.fork, arm=asking(arm.fork.arm))
        return replace(arm, llm=model, fork=fork)

    asked = replace(made.plan, arms=tuple(map(asking, made.plan.arms)))
    execute(asked, folder, cohort=512, workers=1, launcher=made.launcher, progress=lambda *_: None)
    root = made.composed.root
    known = {"schema": schema.SCHEMA_VERSION, "arms": [arm.name for arm in asked.arms], "config": root}
    known |= {"compositions": made.composed.arms, "domain": asked.simulator.domain.plain()}
    save(folder, known | {key: root[key] for key in ("question", "seed", "users", "weeks")})
    return Run(folder), model


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Witness]:
    """A run of all arms, and all that its model was asked."""
    return witnessed(tmp_path_factory.mktemp("asked"))


@pytest.mark.req("K13")
def test_a_prompt_holds_no_code_that_this_user_did_not_tell_before(asked: tuple[Run, Witness]) -> None:
    run, model = asked
    told: dict[str, set[int]] = {}
    turns = rows(run, "never").sort_values(["user", "turn"])
    known: dict[tuple[int, str], set[int]] = {}
    for user, message in zip(turns["user"], turns["message"], strict=True):
        told.setdefault(str(user), set()).update(codes_in(message))
        known.setdefault((user, message), set()).update(told[str(user)])
    by_message: dict[str, list[set[int]]] = {}
    for (_, message), some in known.items():
        by_message.setdefault(message, []).append(some)
    with_codes = 0
    for ask in model.asks:
        inside = {code for pair in ask.about.earlier for words in pair for code in codes_in(words)}
        with_codes += bool(inside)
        assert any(inside <= some for some in by_message[ask.about.message])
    assert with_codes > 100


def test_equal_asks_of_a_step_are_made_once_and_each_arm_pays(asked: tuple[Run, Witness]) -> None:
    run, model = asked
    called = sum((rows(run, arm)["serving"] != "stored").sum() for arm in run.arms)
    paid = sum(rows(run, arm)["cost_usd"].sum() for arm in run.arms)
    assert paid == pytest.approx(0.5 * called)
    assert len(model.asks) < called


def test_words_that_did_not_come_are_wrong_and_null_in_the_log(tmp_path: Path) -> None:
    run, _ = witnessed(tmp_path, "", ARMS, "users=2", "weeks=1")
    for arm in run.arms:
        turns = rows(run, arm)
        assert turns["said"].isna().all()
        assert not turns["answer_correct"].any()


# ----------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (("llm=simulated",), "arm 'a' is answered by a model without words (llm=simulated), and this world judges"),
        (("llm=scripted",), "llm=Scripted is a model of texts. It answers users as llm=in_words"),
        (("llm.llm=simulated",), "llm.llm=Simulated draws what it costs to answer users and writes no text"),
        (("serving=procedure",), "arm 'a' has serving=procedure, and this world judges words alone"),
        (("policy=vcache",), "arm 'a' compares answers with stored ones (VCache), and this world does not say"),
        (("llm.answer_tokens=0",), "llm.answer_tokens=0 must be at least 1"),
        (("llm.prompts=nowhere",), "there is no prompt file nowhere/answer.md"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_refused_before_a_run(overrides: tuple[str, ...], says: str) -> None:
    assert says in refused("arms={a: []}", "reference=a", *overrides)


def test_words_in_a_world_that_judges_none_are_refused() -> None:
    with pytest.raises(UsageError, match=r"arm 'a' is answered in words \(llm=in_words\), and this world judges only"):
        prepare(compose(["llm=in_words", "arms={a: []}", "reference=a", "users=2", "weeks=1"]))


def test_a_prompt_of_ones_own_has_no_schema(tmp_path: Path) -> None:
    text = (PROMPTS / "answer.md").read_text("utf-8")
    (tmp_path / "answer.md").write_text(text.replace("null\n```", '{"type": "object"}\n```'), "utf-8")
    assert "answer.md has a schema; answers are any text: null" in refused(f"llm.prompts={tmp_path}")
    (tmp_path / "answer.md").write_text(text.replace("null\n```", "7\n```"), "utf-8")
    load_prompt.cache_clear()
    assert "its schema must be a JSON object, or null" in refused(f"llm.prompts={tmp_path}")
