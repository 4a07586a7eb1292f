"""`skg-bench estimate` of arms: replayed on the log of another arm, held against what they do when they are run."""

import csv
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import skg_bench
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.outcomes import worth_of
from skg_bench.analysis.policy_value.estimates import PolicyEstimates, PolicyValue, ReplayedPolicy
from skg_bench.app.judged_turns import log_by_people
from skg_bench.app.replayed_arms import replay_arms
from skg_bench.core.errors import UsageError
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from skg_bench.simulator.logs.outcome_models import ModelKind
from tests.app.test_cli import call, refused
from tests.runs import changed, logs_alone, rewritten

RULE = ["policy=threshold"]
STRICT = ["policy=threshold", "policy.threshold=0.6"]
LAX = ["policy=threshold", "policy.threshold=0.4"]
MORE = ["curator.offer_after=answer"]
OF_RULE = [STRICT, LAX, MORE]  # asked of its log at once
ARMS = {
    "rule": [], "strict": STRICT, "lax": LAX, "more": MORE, "soft": ["policy=softmax"], "wise": ["policy=thompson"],
    "free": ["policy=epsilon_threshold", "policy.epsilon=0.1"],
    "both": ["policy=interleave", "policy.first.threshold=0.4"],
    "still": ["fork=rule@40", "freeze=all", "freeze_at=40", "policy.threshold=0.6"],
    "prompts": ["serving=prompted"],
    "small": ["policy=epsilon_threshold", "policy.epsilon=0.1", "curator=budget", "curator.capacity=1"],
}  # fmt: skip


@pytest.fixture(scope="module")
def run(once: Callable[..., Path]) -> Run:
    """Twelve users for two weeks, under loggers and the targets that are asked about."""
    arms = ", ".join(f"{name}: [{','.join(texts)}]" for name, texts in ARMS.items())
    size = ("profile=smoke", "users=12", "weeks=2", "simulator.corpus=builtin_120", "simulator.volume_spread=0.2")
    words = [*size, "reference=rule", f"arms={{{arms}}}"]
    with logs_alone():
        return Run(once("replayed", lambda out: skg_bench.run([*words, f"out={out}"])))


@pytest.fixture
def copied(run: Run, tmp_path: Path) -> Run:
    """A copy to change."""
    return Run(shutil.copytree(run.path, tmp_path / "changed"))


def asked(
    run: Run,
    arm: str,
    target: Sequence[str],
    *,
    estimand: str = "loop",
    reward: str = "utility",
    model: ModelKind = "constant",
) -> tuple[PolicyValue, ReplayedPolicy, PolicyEstimates]:
    together = OF_RULE if (arm, estimand, reward, model) == ("rule", "loop", "utility", "constant") else [target]
    made = estimated(run, arm, tuple(map(tuple, together)), estimand=estimand, reward=reward, model=model)
    at = list(together).index(target)
    return made.values[1 + at], made.replays[at], made


@cache
def estimated(
    run: Run, arm: str, targets: tuple[tuple[str, ...], ...], *, estimand: str, reward: str, model: ModelKind
) -> PolicyEstimates:
    """Estimates, made once of each run that is opened."""
    named = {f"target {i}": target for i, target in enumerate(targets)}
    return skg_bench.estimate(
        run, targets=named, arm=arm, estimand=estimand, columns={"reward": reward}, reward_model=model
    )


def alone(run: Run) -> PolicyValue:
    """The first of OF_RULE, asked by itself."""
    return skg_bench.estimate(run, targets={"target 0": STRICT}, arm="rule", reward_model="constant").values[1]


def truth(run: Run, arm: str, since: int = 0) -> float:
    table = worth_of(run, arm, Utility.of(run.config))
    return float(table["utility"].to_numpy()[table["turn"].to_numpy() >= since].mean())


def itself(run: Run, arm: str) -> None:
    replay_arms(run, arm, {}, "answer_correct", model="constant", progress=lambda _done, _total: None)


@pytest.mark.parametrize("arm", ["soft", "wise"])
def test_an_arm_played_on_its_own_log_decides_as_the_log_says(arm: str, run: Run) -> None:
    """Of rule, free, both, more, prompts and small each estimate below begins with it."""
    itself(run, arm)


@pytest.mark.parametrize("arm", ["free", "prompts"])
def test_an_arm_as_a_target_of_its_own_log_is_known_on_every_turn(arm: str, run: Run) -> None:
    value, knows, made = asked(run, arm, ARMS[arm] if arm == "free" else RULE)
    assert knows.known == 1.0
    assert value.value == pytest.approx(truth(run, arm), abs=1e-12)
    assert value.difference == pytest.approx(0.0, abs=1e-12)
    assert knows.bounds == pytest.approx((value.value, value.value), abs=1e-12)
    assert (value.estimand, value.verdict, made.users) == ("loop", "inconclusive", 12)  # whatever is lost by rounding


def test_estimates_are_the_same_whatever_the_workers_and_cohorts(run: Run) -> None:
    other = Run(run.path)
    other.manifest["config"] |= {"workers": 2, "cohort": 40}
    assert alone(other) == asked(run, "rule", STRICT)[0]


@pytest.mark.parametrize(("arm", "target", "name"), [("rule", STRICT, "strict"), ("both", LAX, "lax")])
def test_a_target_comes_out_as_when_it_is_run(arm: str, target: Sequence[str], name: str, run: Run) -> None:
    value, knows, _ = asked(run, arm, target, model="logistic")
    known = truth(run, name)
    assert not knows.withheld
    assert value.value == pytest.approx(known, abs=0.01)
    assert knows.bounds[0] <= known <= knows.bounds[1]
    assert knows.known < 1.0
    assert (value.difference > 0) == (known > truth(run, arm))


def test_a_laxer_target_is_withheld_from_a_strict_log_and_given_where_a_coin_decided(run: Run) -> None:
    value, knows, _ = asked(run, "rule", LAX)
    assert value.verdict == "withheld"
    assert np.isnan(value.difference)
    assert "Log" in knows.withheld
    assert "policy=interleave" in knows.withheld
    assert knows.bounds[0] < truth(run, "lax") < knows.bounds[1]
    assert asked(run, "both", LAX, model="logistic")[0].verdict in ("lower", "inconclusive")


def test_a_curator_that_offers_more_is_withheld_and_given_where_it_was_logged(run: Run) -> None:
    value, knows, _ = asked(run, "rule", MORE)
    assert value.verdict == "withheld"
    assert "it makes an offer after an answer after which the log made none" in knows.withheld
    assert "Log an arm that makes these offers" in knows.withheld
    value, knows, _ = asked(run, "more", [*MORE, *STRICT])
    assert not knows.withheld
    assert knows.invented < 0.01


def test_a_snapshot_learns_nothing_from_its_turn_on(run: Run) -> None:
    value, knows, _ = asked(run, "rule", STRICT, estimand="snapshot@40")
    assert value.estimand == "snapshot@40"
    assert value.value == pytest.approx(truth(run, "still", since=40), abs=0.005)
    assert knows.known > 0.98


def test_an_answer_that_the_log_had_dropped_is_one_that_it_could_not_have_given(run: Run) -> None:
    knows = asked(run, "small", ["curator=skg"])[1]
    assert knows.unsupported > knows.modelled > 0  # most answers that a book of one skill lacks were dropped


def test_the_reward_may_be_a_column(run: Run) -> None:
    value, _, made = asked(run, "rule", STRICT, reward="answer_correct")
    right = run.turns("strict")["answer_correct"].to_numpy(zero_copy_only=False).mean()
    assert value.value == pytest.approx(float(right), abs=0.005)
    assert made.values[0].value == pytest.approx(
        float(run.turns("rule")["answer_correct"].to_numpy(zero_copy_only=False).mean()), abs=1e-12
    )


# ------------------------------------------------------------------------------------- answers that people judge


def judged(run: Run, path: Path, *, keep: float = 1.0, chance: float | None = None, n: int = 500) -> Path:
    """Turns of `rule`, drawn to be judged, with what people say; `keep`: share of their labels that is handed in."""
    sheet = path / "sheet.csv"
    call("data", "label", str(run.path), "--arm", "rule", "--n", str(n), "--first", "hit", "--out", str(sheet))
    right = run.turns("rule")["answer_correct"].to_pylist()
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert not {"answer_correct", "intent"} & set(rows[0])
    for row, truth_ in zip(rows, right, strict=True):
        if row["judge"] == "1" and (row["hit"] == "1" or int(row["turn"]) % 100 < 100 * keep):
            row["reward"] = "true" if truth_ else "false"
        row["reward_propensity"] = row["reward_propensity"] if chance is None else str(chance)
        if keep < 1:
            del row["judge"]
    filled = path / "filled.csv"
    with filled.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return filled


def by_people(run: Run, sheet: Path) -> PolicyEstimates:
    """STRICT, by turns that people judged."""
    return skg_bench.estimate(run, targets={"target 0": STRICT}, arm="rule", reward_model="constant", judged=sheet)


def test_answers_that_some_people_judged_say_what_the_log_says(run: Run, tmp_path: Path) -> None:
    """The log's own right answers are not read: they are turned over."""
    made, whole = by_people(run, judged(run, tmp_path)), asked(run, "rule", STRICT)
    value, knows = made.values[1], made.replays[0]
    assert made.missing == len(run.turns("rule")) - 500
    assert knows.known == whole[1].known
    assert not knows.withheld
    low, high = knows.these_users
    assert low < truth(run, "strict") < high
    assert high - low > 2 * (whole[1].these_users[1] - whole[1].these_users[0])
    low, high = knows.these_users_difference
    assert low < truth(run, "strict") - truth(run, "rule") < high
    assert value.interval[0] < truth(run, "strict") < value.interval[1]


def test_a_log_of_which_all_is_judged_is_as_one_that_says_what_was_right(run: Run, tmp_path: Path) -> None:
    sheet = judged(run, tmp_path, n=len(run.turns("rule")) - 1)
    rows = sheet.read_text("utf-8").splitlines()
    right = run.turns("rule")["answer_correct"].to_pylist()
    heads = rows[0].split(",")
    whole = ["user,turn,reward,reward_propensity"]
    for row, truth_ in zip(csv.DictReader(rows), right, strict=True):
        whole.append(f"{row['user']},{row['turn']},{int(truth_)},1")
    sheet.write_text("\n".join(whole), "utf-8")
    assert "reward_propensity" in heads
    assert by_people(run, sheet).values[1] == asked(run, "rule", STRICT)[0]


def test_chances_by_which_turns_were_not_drawn_are_caught(run: Run, tmp_path: Path) -> None:
    for name, keep, chance in (("lost", 0.5, None), ("wrong", 1.0, 0.9)):
        (tmp_path / name).mkdir()
        (knows,) = by_people(run, judged(run, tmp_path / name, keep=keep, chance=chance)).replays
        assert "reward_propensity is not the chance" in knows.withheld


@pytest.mark.parametrize(
    ("column", "text", "says"),
    [
        ("arm", "strict of", "the log is 'rule of"),
        ("message", "Another message", "the log has"),
        ("answer_to", "Another message", "the log has"),
    ],
)
def test_a_sheet_of_other_turns_is_refused_by_what_stands_in_it(
    column: str, text: str, says: str, run: Run, tmp_path: Path
) -> None:
    """Blanks and ends of lines may be others, and a text may be guarded."""
    sheet = judged(run, tmp_path)
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["arm"] for row in rows} == {f"rule of {run.manifest['identity'][:16]}"}
    for changes, fails in (({"message": f" {rows[3]['message']}\n"}, False), ({column: text}, True)):
        rows[3] |= changes
        with sheet.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        if fails:
            with pytest.raises(UsageError, match=f"row 5: {column} is .*{says}"):
                log_by_people(run, "rule", sheet)
        else:
            log_by_people(run, "rule", sheet)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("user,turn,reward\n0,0,1", "it has no column 'reward_propensity'"),
        ("user,turn,reward,reward_propensity\n0,0,1,0.5", "turns have no row, such as user 0, turn 1"),
        ("user,turn,reward,reward_propensity\n0,0,1,0.5\n0,0,1,0.5", "stands in the table twice"),
        ("user,turn,reward,reward_propensity\n99,0,1,0.5", "the log has users 0 to 11"),
        ("user,turn,reward,reward_propensity\n0,9999,1,0.5", "user 0 has turns 0 to"),
        ("user,turn,reward,reward_propensity\n0,0,0.7,0.5", "1 or 0 is needed"),
        ("user,turn,reward,reward_propensity\n0,0,1,0", "a chance above 0, at most 1"),
        ("user,turn,hit,reward,reward_propensity\n0,0,1,1,0.5", "the sheet is of another arm or run"),
        ("user,turn,judge,reward,reward_propensity\n0,0,0,1,0.5", "row 2: judge is '0'; its reward is filled in"),
        ("user,turn,judge,reward,reward_propensity\n0,0,1,,0.5\n0,1,1,1,0.5", "1 of 2 drawn rows have no reward, such"),
    ],
)
def test_a_table_that_does_not_judge_the_turns_of_the_log_is_refused(
    text: str, says: str, run: Run, tmp_path: Path
) -> None:
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(text, "utf-8")
    target = ("--target", "x=[policy=never]")
    assert says in refused("estimate", str(run.path), "--arm", "rule", *target, "--judged", str(sheet))


# ----------------------------------------------------------------------------------------------- what is caught


def test_a_changed_propensity_is_caught_by_its_turn(copied: Run) -> None:
    def change(table: pa.Table) -> pa.Table:
        values = table["propensity"].to_numpy().copy()
        values[7] = 0.5
        return table.set_column(table.column_names.index("propensity"), table.schema.field("propensity"), [values])

    rewritten(copied.shards("turns", "rule")[0], change)
    with pytest.raises(UsageError, match=r"user \d+, turn 7: propensity 1.0, and the log says 0.5"):
        itself(Run(copied.path), "rule")


def test_another_router_than_that_of_the_log_is_caught(copied: Run) -> None:
    compositions = copied.manifest["compositions"]
    compositions["rule"]["router"] = {"_target_": "skg_bench.router.repeat_last.RepeatLast"}
    with pytest.raises(UsageError, match="played on its own log, the arm decides otherwise"):
        itself(changed(copied, compositions=compositions), "rule")


def test_users_who_bring_other_events_after_other_answers_are_refused(copied: Run) -> None:
    with pytest.raises(UsageError, match="stream: reactive"):
        itself(changed(copied, stream="reactive"), "rule")


def test_no_truth_but_the_reward_is_read(copied: Run, run: Run) -> None:
    truths = [
        field.name for field in schema.turns(1)
        if field.metadata[b"truth"] == b"yes" and field.name not in ("answer_correct", "same_intent")
    ]  # fmt: skip

    def change(table: pa.Table) -> pa.Table:
        for name in truths:
            order = pa.array(np.arange(len(table))[::-1])
            field = table.schema.field(name)
            table = table.set_column(table.column_names.index(name), field, table[name].take(order))
        return table

    rewritten(copied.shards("turns", "rule")[0], change)
    assert len(truths) >= 5
    assert alone(Run(copied.path)) == asked(run, "rule", STRICT)[0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--target", "x=[llm.right=0.5]"), "a target may change router, reranker"),
        (("--target", "x=[simulator=clinc150]"), "a target may change router, reranker"),
        (("--target", "x=[router=oracle]"), "it knows which answers are right, and no log does"),
        (("--target", "x=[policy=vcache]"), "a log has no such verdicts"),
        (("--target", "x=[policy.thresold=0.5]"), "did you mean 'policy.threshold'"),
        (("--target", "x=[]"), "no override is given"),
        (("--target", "rule=[policy=never]"), "take another one"),
        (("--target", "x=[policy=never]", "--estimand", "snapshot"), "write step, loop, or snapshot@S"),
        (("--target", "x=[policy=never]", "--estimand", "snapshot@9999"), "0 users have turns from 9999 on"),
        (("--target", "x=[policy=never]", "--reward", "skill_learned"), "valid: answer_correct, utility"),
        (("--target", "log=[policy=never]"), "the log that targets are held against has this name"),
        (("--target", "x=[policy=never]", "--reward-model", "tree"), "--reward-model tree: valid: boosted"),
        (("--target", "x=[policy=never]", "--estimator", "ips"), "--estimator goes with --estimand step"),
        (("--target", "x=[policy=never]", "--against", "y"), "--against y: valid: log, x"),
        (("--target", "x=[policy=never]", "--figure", "x.png"), "name a file that ends in .svg or .html"),
        (("--target", "x=[policy=never]", "--estimand", "step", "--judged", "x.csv"), "--judged x.csv goes with"),
        (("--policy", "x=0.5", "--estimand", "loop"), "--policy goes with --estimand step"),
    ],
)  # fmt: skip
def test_bad_words_end_with_what_is_valid(words: tuple[str, ...], says: str, run: Run) -> None:
    assert says in refused("estimate", str(run.path), "--arm", "rule", *words)


def test_what_is_printed_names_estimand_knowledge_and_assumptions(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "values.html"
    code, out, _ = call(
        "estimate", str(run.path), "--arm", "rule", "--target", "strict_=[policy.threshold=0.6]", "--target",
        "lax_=[policy.threshold=0.4]", "--figure", str(page), "--reward-model", "constant",
    )  # fmt: skip
    assert code == 0
    assert "loop: the arm from the first turn on, learning" in out
    assert "* lax_ is withheld:" in out
    assert "assumed: messages do not depend on answers" in out
    assert "not checked: whether messages depend on answers, as chance decided too few turns" in out
    assert "answers of the LLM" in out
    assert "unsupported" in out
    text = page.read_text("utf-8")
    assert text.count("<table") == 3  # values; known, modelled, unsupported; calibration
    assert "<svg" in text
    assert "assumed: messages do not depend on answers" in text
    assert "* lax_ is withheld:" in text


def test_a_policy_that_the_log_carries_is_also_valued_in_its_states(run: Run) -> None:
    """The same figure as of the estimand `step`, beside the loop, and only for targets that change the policy alone."""
    bolder, mine = ["policy.epsilon=0.2"], {"reward": "answer_correct"}
    targets = {"bold": bolder, "router": ["router=bm25"]}
    made = skg_bench.estimate(run, targets=targets, arm="free", columns=mine, reward_model="constant")
    alone = skg_bench.estimate(run, targets={"bold": bolder}, arm="free", columns=mine, estimand="step")
    (beside,) = (value for value in made.values if value.estimand == "step")
    assert beside == next(value for value in alone.values if value.estimator == "snips" and value.policy == "bold")
    assert [value.policy for value in made.values] == ["log", "bold", "router", "bold"]


@pytest.mark.parametrize("users", [2, 4])
def test_two_users_are_said_to_decide_nothing(users: int, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    rows = [f"{i % users},0.5,{i % 3 % 2}" for i in range(400)]
    log.write_text("\n".join(["user,propensity,reward", *rows]), "utf-8")
    code, out, _ = call("estimate", str(log), "--policy", "same=0.5")
    assert code == 0
    assert ("2 users decide nothing" in out) == (users == 2)
