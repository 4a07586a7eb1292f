"""Curators that keep facts, their controls, and the causes of what they lose."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from skg_bench.core.spoken import ANSWER_FRAME
from skg_bench.core.text import word_count
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.shards import LogName
from skg_bench.simulator.facts.table import pair_needs
from skg_bench.simulator.facts.waterfall import FACT_CAUSES, fact_losses
from tests.laws.world import rows
from tests.simulator.facts.fact_runs import carried_out, habits, world

USERS, WEEKS = 20, 2
FORK = 60
RIGHT_WITH_SKILL = 0.93  # of llm=simulated
FACT_LOGS: tuple[LogName, ...] = ("turns", "updates", "feedback")
KEEPS = ["curator=facts", "reranker=identity", "signals.preference=0", "policy.threshold=0.3"]
SURE = ["curator.misses=0", "curator.misses_implied=0", "curator.corrections=false"]  # who errs is corrected more
ARMS = {
    "never": ["policy=never", "curator=none"],
    "empty": ["assistant=recall", "assistant.recalls=last", "assistant.last=0"],
    "history": ["assistant=recall"],
    "facts_oracle": ["assistant=recall", "assistant.recalls=about"],
    "keeps": [*KEEPS, *SURE],
    "forgets": [*KEEPS, *SURE[1:], "curator.misses=0.7"],
    "not_found": [*KEEPS[:3], *SURE, "policy.threshold=0.95"],
    "outdated": [*KEEPS, *SURE, "curator.again=ignore"],
    "never_declines": [*KEEPS[:3], *SURE, "policy=always"],
    "sham": ["curator=sham", "curator.curator=facts", *KEEPS[1:]],
    "donor": [f"fork=keeps@{FORK}", "book=donor", "curator=none", "policy=always"],
    "frozen": [*KEEPS, *SURE, "freeze=all", "freeze_at=0"],
}
WORLD = ("simulator.facts_change=0.6", "simulator.mistaken=0", "simulator.never_told=0.3", "simulator.implied=0",
         "simulator.users.volume_spread=0.2", "simulator.users.active_low=1",
         "simulator.users.messages_per_day=9")  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return played(tmp_path_factory.mktemp("run"), ARMS)


def played(out: Path, arms: Mapping[str, Sequence[str]], *overrides: str) -> Run:
    """A run of these arms in a world that changes much."""
    dense = [text for text in habits("simulator.users") if "messages_per_day" not in text]
    return carried_out(
        out, arms, "simulator=facts", "serving=prompted", f"users={USERS}", f"weeks={WEEKS}",
        "embedder=hashing", "seed=5", *WORLD, *dense, *overrides,
    )  # fmt: skip


def losses(run: Run, arm: str, guesses: float = 0.3) -> dict[str, float]:
    turns, updates, feedback = (rows(run, log, arm, range(USERS)) for log in FACT_LOGS)
    return fact_losses(turns, updates, feedback, pair_needs(None), guesses)


def test_causes_add_up_to_what_is_lost(run: Run) -> None:
    for arm in ARMS:
        turns = rows(run, "turns", arm, range(USERS)).to_pandas()
        lost = (1 - turns[turns.need.notna()].chance).sum()
        assert sum(losses(run, arm).values()) == pytest.approx(lost, abs=1e-9)


def test_the_oracle_of_facts_gains_what_the_ledger_says(run: Run) -> None:
    never, oracle = (rows(run, "turns", arm, range(USERS)).to_pandas() for arm in ("never", "facts_oracle"))
    told = never.need == "told"
    assert told.sum() > 80
    assert never[told].answer_correct.mean() <= 0.1
    made = world()
    guess = made.guess_right * (1 - made.asks_back - made.declines)
    gain = (oracle[told].chance - never[told].chance).sum()
    assert gain == pytest.approx(told.sum() * (RIGHT_WITH_SKILL - guess), abs=1e-12 * told.sum())
    causes = losses(run, "facts_oracle")
    assert [causes[name] for name in ("told_not_kept", "kept_not_found", "outdated", "mistaken")] == [0, 0, 0, 0]


def test_an_empty_prompt_is_that_of_no_memory(run: Run) -> None:
    never, empty = (rows(run, "turns", arm, range(USERS)).to_pandas() for arm in ("never", "empty"))
    for column in ("answer_correct", "chance", "tokens_in", "user_satisfaction", "prompt", "manner"):
        assert never[column].equals(empty[column])
    history = rows(run, "turns", "history", range(USERS)).to_pandas()
    assert history.tokens_in.mean() > 1.5 * never.tokens_in.mean()
    assert (history[history.need == "told"].prompt == "fact").mean() > 0.7


DEFECTS = {
    "forgets": "told_not_kept",
    "not_found": "kept_not_found",
    "outdated": "outdated",
    "never_declines": "should_have_declined",
}


@pytest.mark.parametrize(("arm", "cause"), DEFECTS.items())
def test_each_cause_is_moved_by_its_own_defect_and_by_no_other(run: Run, arm: str, cause: str) -> None:
    whole, broken = losses(run, "keeps"), losses(run, arm)
    worse = {name: broken[name] - whole[name] for name in FACT_CAUSES}
    assert worse[cause] > 1
    assert max(worse[name] for name in FACT_CAUSES if name not in (cause, "model")) <= 1e-9, worse


def test_no_memory_moves_what_was_never_told_and_a_model_that_guesses_does(run: Run, tmp_path: Path) -> None:
    for arm in ("keeps", *DEFECTS):
        assert losses(run, arm)["never_told"] == pytest.approx(losses(run, "never")["never_told"], abs=1e-9)
    guessing = played(tmp_path, {name: ARMS[name] for name in ("never", "keeps")}, "simulator.declines=0.1")
    for arm in ("never", "keeps"):
        whole, broken = losses(run, arm), losses(guessing, arm, guesses=0.6)
        assert broken["never_told"] > 1.5 * whole["never_told"]
        assert all(broken[name] <= whole[name] + 1e-9 for name in FACT_CAUSES if name not in ("never_told", "model"))


def test_a_fact_of_another_user_is_right_by_luck_alone(run: Run) -> None:
    arms = {arm: rows(run, "turns", arm, range(USERS)).to_pandas() for arm in ("never", "keeps", "donor")}
    late = {arm: turns[(turns.need == "told") & (turns.turn >= FORK)] for arm, turns in arms.items()}
    chance = {arm: turns.chance.mean() for arm, turns in late.items()}
    assert chance["keeps"] - chance["never"] > 0.2
    assert chance["donor"] - chance["never"] < 0.25 * (chance["keeps"] - chance["never"])
    other = late["donor"][late["donor"].prompt == "outdated"]
    assert len(other) >= 1
    assert (other.chance == 0).all()


def test_a_memory_that_may_not_learn_is_none(run: Run) -> None:
    never, frozen = (rows(run, "turns", arm, range(USERS)).to_pandas() for arm in ("never", "frozen"))
    assert never.answer_correct.equals(frozen.answer_correct)
    assert set(frozen.prompt.dropna()) == {"nothing"}


def test_one_that_never_updates_loses_on_changed_facts_and_a_sham_knows_nothing(run: Run) -> None:
    def right(arm: str) -> float:
        turns = rows(run, "turns", arm, range(USERS)).to_pandas()
        return float(turns[(turns.need == "told") & turns.fact_changed].chance.sum())

    assert right("outdated") < right("keeps")
    told = {arm: rows(run, "turns", arm, range(USERS)).to_pandas() for arm in ("never", "keeps", "sham")}
    chance = {arm: turns[turns.need == "told"].chance.mean() for arm, turns in told.items()}
    assert chance["keeps"] > chance["never"] + 0.05
    assert chance["sham"] - chance["never"] < 0.5 * (chance["keeps"] - chance["never"])


def test_a_prompt_costs_the_words_of_all_that_it_recalls(run: Run) -> None:
    """What an assistant says of its prompt's length decides nothing: none is asked."""
    llm = run.manifest["compositions"]["history"]["llm"]
    whole, bare = (rows(run, "turns", arm, range(USERS)).to_pandas() for arm in ("history", "never"))
    for user, turns in whole.groupby("user"):
        words = turns.message.map(word_count) + ANSWER_FRAME
        before = words.cumsum() - words
        fits = (before < 3000).to_numpy()  # all of it, below the limit of assistant.words
        recalls = (turns.serving == "prompted").to_numpy()
        paid = turns.tokens_in.to_numpy() - bare[bare.user == user].tokens_in.to_numpy()
        due = before.to_numpy() * llm["tokens_per_word"] + recalls * llm["skill_tokens"]
        assert abs(paid - due)[fits].max() <= 1.0
        assert paid[fits].max() > 1000


def test_facts_in_the_prompt_of_a_class_are_read_in_any_order_and_as_those_of_a_reply(tmp_path: Path) -> None:
    """Once the model read one answer of a prompt of a class, of a chat in order the oldest: new facts were lost."""
    file = Path(__file__).parents[2] / "assistant" / "python" / "objects.py"
    mine = ["assistant=python", f"assistant.file={file}:LastThree", "assistant.controls=false"]
    parameters = "assistant.parameters.most=60", "assistant.parameters.spelled"
    table = {each: [*mine, parameters[0], f"{parameters[1]}={each}"] for each in ("blanks", "oldest")}
    table["control"] = ["assistant=recall", "assistant.recalls=last", "assistant.last=60"]
    made = played(tmp_path / "run", table, "reference=control")
    newest, oldest, control = (rows(made, "turns", arm, range(USERS)).to_pandas() for arm in table)
    columns = ["serving", "prompt", "manner", "answer_correct", "tokens_in", "cost_usd"]
    assert newest[columns].equals(oldest[columns])
    told = newest.need == "told"
    assert (newest[told].prompt == "fact").sum() > 60
    assert newest[told].prompt.tolist() == control[told].prompt.tolist()
