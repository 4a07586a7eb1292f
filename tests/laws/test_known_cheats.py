"""Law 6: assistants and curators that compute with all that they are handed gain nothing, or are refused by name.

Each is tried beside its honest twin, and against an engine that hands out too much: else the tests could not fail.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pytest

from skg_bench.analysis.comparison.compare import compare
from skg_bench.core.batch import NO_OPERATIONS, Batch
from skg_bench.core.deciding import Candidates, Memoryless
from skg_bench.core.draws import salted, word
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import F64, Bool
from skg_bench.core.learning_jobs import NO_JOBS, Jobs
from skg_bench.core.types import Completions, Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.engine.agreement_judge import JUDGE, AgreementJudge
from skg_bench.engine.plan import Plan
from skg_bench.engine.relabel import Relabelled
from skg_bench.policy.shared.distributions import certain
from skg_bench.runfolder.run import Run
from tests.arms import changed
from tests.laws import world
from tests.laws.cheats import Inventing, Keys, Paid, Reader, Seer, Unfolding, Verbatim, Verifier

USERS = 24
WHO = r"tests\.laws\.cheats\.{} of arm 'never', user \d+, turn {}: {}"


def plan_of(assistant: Any, salt: int = 0, comparison: AgreementJudge = JUDGE) -> Plan:
    """The dense world under one assistant."""
    made = world.plan(USERS, ("never",))
    arm = replace(made.arms[0], assistant=assistant)
    return replace(made, arms=(arm,), salt=salt, comparison=comparison)


def utility(plan: Plan, out: Path) -> float:
    """Mean utility of a turn, at the prices of conf/config.yaml."""
    run = world.carry_out(plan, out, USERS, 1000)
    names = ("answer_correct", "cost_usd", "latency_ms")
    right, usd, latency = (run.turns("never", [n])[n].to_numpy().astype(np.float64) for n in names)
    return float(np.mean(right - (1 - right) - 10 * usd - 0.02 * latency / 1000))


@pytest.fixture(scope="module")
def drawn() -> int:
    """A salt that nobody can guess; a failed assertion shows it."""
    return secrets.randbits(128)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory, drawn: int) -> dict[int, float]:
    """Utility of verbatim matching, by salt."""
    folder = tmp_path_factory.mktemp("honest")
    return {salt: utility(plan_of(Verbatim(), salt), folder / str(salt)) for salt in (0, drawn)}


@pytest.mark.req("U06")
@pytest.mark.parametrize("cheat", ["keys", "seer"])
def test_who_finds_a_small_seed_knows_all_and_a_drawn_salt_leaves_nothing_to_find(
    tmp_path: Path, drawn: int, honest: dict[int, float], cheat: str
) -> None:
    assistant = Keys() if cheat == "keys" else Seer(world=world.plan(USERS, ("never",)).simulator, people=USERS)
    assert utility(plan_of(assistant), tmp_path / "default") > honest[0] + 0.01
    assert assistant.found
    assert utility(plan_of(assistant, drawn), tmp_path / "drawn") == honest[drawn], drawn
    assert not assistant.found


def test_an_arm_that_undoes_its_keys_finds_its_own_word_and_neither_the_seed_nor_the_order_of_ids(
    tmp_path: Path, drawn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sixth cheat: ids of texts were once permuted by the word of the arms, so that it put the corpus in order."""
    cheat = Unfolding()
    plan = plan_of(cheat, drawn)
    utility(plan, tmp_path / "run")
    assert cheat.word == word(salted(plan.seed, drawn), b"arms")
    assert not {word(seed, b"arms") for seed in range(1000)} & {cheat.word}
    there = Relabelled(plan.simulator, plan.salted).messages
    monkeypatch.setattr(Relabelled, "_order", _by_word(cheat.word))
    assert Relabelled(plan.simulator, plan.salted).messages != there


def _by_word(found: int) -> Callable[[Relabelled, int, int], Any]:
    from skg_bench.core.draws import Purpose, draw, key

    return lambda _self, kind, n: np.argsort(draw(key(found, kind), np.arange(n), Purpose.RELABEL), kind="stable")


@pytest.mark.parametrize(
    ("spent", "says"),
    [({"usd": -0.01}, r"cost_usd=-0\.01"), ({"usd": float("nan")}, "cost_usd=nan"), ({"usd": np.inf}, "cost_usd=inf"),
     ({"usd": 0.0, "latency": -1.0}, r"latency_ms=-1\.0"), ({"tokens": -5}, "tokens_in=-5"),
     ({"tokens": float("nan")}, "tokens_in=nan")],
)  # fmt: skip
def test_an_arm_that_pays_itself_is_refused(tmp_path: Path, spent: dict[str, float], says: str) -> None:
    with pytest.raises(UsageError, match=WHO.format("Paid", 0, f"gave {says}; valid are finite numbers, not neg")):
        utility(plan_of(Paid(**spent)), tmp_path / "run")


@pytest.mark.parametrize("comparison", [AgreementJudge(0.0, 0.0), JUDGE])
def test_that_two_texts_say_the_same_is_no_proof_that_they_are_right_and_is_paid_for(
    tmp_path: Path, comparison: AgreementJudge
) -> None:
    """Over eight salts the verifier was 0.0034 (standard error 0.0027) ahead of `never` with certain truth for nothing,
    and 0.0034 (0.0033) behind it with the judge.
    """
    run = world.carry_out(plan_of(Verifier(), 0, comparison), tmp_path / "run", USERS, 1000)
    turns = run.turns("never", ["agrees", "answer_correct", "cost_usd", "tokens_in", "tokens_out"]).to_pandas()
    same = turns[turns["agrees"] == True]  # noqa: E712  null: not compared
    assert len(same) > 20
    right = same["answer_correct"].mean()
    assert right == 1.0 if comparison.errs == 0 else right < 1.0
    extra = turns["cost_usd"] - 3e-6 * turns["tokens_in"] - 15e-6 * turns["tokens_out"]
    assert np.allclose(extra, np.where(turns["agrees"].isna(), 0.0, comparison.usd), atol=1e-6)


@pytest.mark.parametrize(
    ("how", "says"),
    [("read", r"read the text \d+, which this user never said"), ("row", r"read the text \d+, which this user never"),
     ("other", r"read the text \d+, which this user never said"), ("near", r"read the text \d+, which this user")],
)  # fmt: skip
def test_texts_that_the_user_has_not_met_are_not_read(tmp_path: Path, how: str, says: str) -> None:
    with pytest.raises(UsageError, match=WHO.format("Reader", 0, says)):
        utility(plan_of(Reader(how=how)), tmp_path / "run")


def test_an_assistant_has_no_library(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="only ensembles of the engine are given all texts"):
        utility(plan_of(Reader(how="library")), tmp_path / "run")


@pytest.mark.parametrize("shift", [0, 1, -1, 10**6, -(10**6)])
@pytest.mark.parametrize("compares", [False, True])
def test_an_answer_that_was_never_given_is_refused(tmp_path: Path, shift: int, compares: bool) -> None:
    field = "compared" if compares else "answer"
    if compares and shift < 0:
        shift = 7
    said = rf"Reply\.{field} is -?\d+, and this user was given no such answer"
    with pytest.raises(UsageError, match=WHO.format("Inventing", r"\d+", said)):
        utility(plan_of(Inventing(shift=shift, compares=compares)), tmp_path / "run")


# ------------------------------------------------------------------------------------------------ parts of pipelines


@dataclass(frozen=True)
class PaidPolicy(Memoryless):
    """The fallback, for less than nothing."""

    def propensities(self, candidates: Candidates, state: None) -> F64:
        b, k = candidates.skill.shape
        if candidates.shown is not None:
            none = np.zeros(b, np.int32)
            candidates.shown.report(candidates.shown.row, Completions(none, none, np.full(b, -1.0), np.zeros(b)))
        return certain(np.full(b, -1, np.int32), k)


@dataclass(frozen=True)
class PeepingPolicy(Memoryless):
    """The fallback, after a look at what nobody said."""

    def propensities(self, candidates: Candidates, state: None) -> F64:
        b, k = candidates.skill.shape
        if candidates.shown is not None:
            candidates.shown.texts.read(np.arange(b, dtype=np.int32), candidates.shown.row)
        return certain(np.full(b, -1, np.int32), k)


@dataclass(frozen=True)
class Curating:
    """Captures nothing; it may ask after every message, report jobs that cost less than nothing, or read ahead."""

    how: str
    sees_truth: ClassVar[bool] = False
    reasons: ClassVar[Sequence[str]] = ("none",)

    def start(self, n: int) -> None:
        return None

    def offers(self, seen: Observation, state: None) -> Bool:
        return np.full(len(seen.text), self.how == "nags")

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: None
    ) -> tuple[None, Batch]:
        if self.how == "paid":
            one = {name: np.zeros(1, getattr(NO_JOBS, name).dtype) for name in Jobs.__dataclass_fields__}
            seen.context.report(Jobs(**{**one, "cost_usd": np.array([-1.0])}))
        if self.how == "reads":
            seen.context.texts.read(np.array([3], np.int32), np.array([0]))
        return None, NO_OPERATIONS


@pytest.mark.parametrize(
    ("part", "component", "says"),
    [("policy", PaidPolicy(), r"PaidPolicy of arm 'skg', user \d+, turn 0: gave cost_usd=-1\.0"),
     ("policy", PeepingPolicy(), r"PeepingPolicy of arm 'skg', user \d+, turn 0: read the text \d+, which"),
     ("curator", Curating("paid"), r"Curating of arm 'skg', user \d+, turn 0: gave Jobs\.cost_usd=-1\.0"),
     ("curator", Curating("reads"), r"Curating of arm 'skg', user \d+, turn 0: read the text 3, which")],
)  # fmt: skip
def test_parts_of_a_pipeline_are_refused_by_their_own_name(
    tmp_path: Path, part: str, component: object, says: str
) -> None:
    made = world.plan(USERS, ("skg",))
    arm = changed(made.arms[0], **{part: component})
    with pytest.raises(UsageError, match=rf"tests\.laws\.test_known_cheats\.{says}"):
        world.carry_out(replace(made, arms=(arm,)), tmp_path / "run", USERS, 1000)


def test_asking_users_after_every_message_costs_utility(tmp_path: Path, drawn: int) -> None:
    made = world.plan(USERS, ("never", "deaf"))
    never, deaf = made.arms
    nags = changed(deaf, policy=cast(Any, changed(never).assistant).components.policy, curator=Curating("nags"))
    run: Run = world.carry_out(replace(made, arms=(never, nags), salt=drawn), tmp_path / "run", USERS, 1000)
    (row,) = [row for row in compare([run], reference="never").rows if row.metric.name == "utility"]
    assert row.mean < row.reference_mean - 0.001, drawn


def test_a_word_for_one_use_is_not_that_of_another_one() -> None:
    assert len({word(salted(7, 5), whose) for whose in (b"arms", b"ids")}) == 2
