"""Assistants without skillbooks: whatever the engine and the commands do for ours, they do for another one."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skg_bench.analysis import summary
from skg_bench.analysis.report import verdict
from skg_bench.app import gate
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from skg_bench.tracker import events
from tests.app.lab import forget, write
from tests.app.test_cli import ROOT, call, refused
from tests.assistant.plugin import ARMS, CUT, WORLD, as_if_committed, install, installed, run, table
from tests.laws import world
from tests.laws.worlds_apart import Contrary, Lying, Remembering
from tests.simulator.logs.logs import turn, write_csv

EVERYONE = range(6)
THEIRS = ("skg", "toy", "diary", "short")
TRUTH = {f.name for f in schema.turns(5) if f.metadata[b"truth"] == b"yes"}
OF_BOOKS = ("max_sim", "matched_skill", "skill_score", "skill_learned", "book_size", "book_version", "book_hash")


@pytest.fixture(scope="module", autouse=True)
def toys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with installed(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture(scope="module")
def base(toys: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    effect = "contrasts=[{kind: effect, arm: toy, reference: frozen, asks: Does it learn?}]"
    return run(tmp_path_factory.mktemp("runs") / "base", table(*ARMS), effect)


def column(made: Run, arm: str, name: str) -> np.ndarray:
    return np.array(made.turns(arm, [name])[name].to_pylist())


# ------------------------------------------------------------------------------------------------ what they do


def test_they_are_listed_and_run_as_arms_and_columns_of_skillbooks_are_null(base: Run) -> None:
    code, out, _ = call("list", "assistant")
    assert code == 0
    assert re.search(r"toy +Answers a message that comes again", out)
    assert re.search(r"pipeline \* +Routes messages over", out)
    for arm in ("toy", "diary"):
        turns = base.turns(arm)
        stored = pc.sum(pc.equal(turns["serving"], "stored")).as_py() if arm == "diary" else 0
        nulls = {name: len(turns) for name in OF_BOOKS} | {"skill_score": len(turns) - stored}  # a cosine, in words
        assert {name: turns[name].null_count for name in OF_BOOKS} == nulls
        assert set(turns["shortlist"].combine_chunks().flatten().to_pylist()) == {None}
        assert len(base.updates(arm)) == 0
    assert set(column(base, "toy", "cause")) == {None}
    assert base.turns("skg", ["max_sim"])["max_sim"].null_count == 0


def test_the_toy_gives_the_answer_to_the_same_words_again_until_it_is_rated_miss(base: Run) -> None:
    turns = base.turns("toy", ["message", "source_turn", "user_satisfaction"]).to_pylist()
    said = {(row["user"], row["turn"]): row for row in turns}
    again = [(row, said[row["user"], row["source_turn"]]) for row in turns if row["source_turn"] >= 0]
    assert len(again) > 100
    assert all(row["message"] == source["message"] for row, source in again)
    assert not any(source["user_satisfaction"] == "miss" for _, source in again)


def test_words_that_repeat_an_answer_are_judged_as_that_answer_and_others_are_not(base: Run) -> None:
    serving, right = column(base, "diary", "serving"), column(base, "diary", "answer_correct")
    rating, cost = column(base, "diary", "user_satisfaction"), column(base, "diary", "cost_usd")
    unjudged = np.array([known is None for known in right])
    assert (serving == "stored").sum() > 100
    assert unjudged.sum() > 10
    assert set(serving[unjudged]) == {"llm"}
    assert set(rating[unjudged]) == {None}
    assert set(cost[unjudged]) == {0.0}
    assert (cost[(serving == "llm") & ~unjudged] > 0).all()
    cause = column(base, "diary", "cause")
    known = np.array([word is not None for word in cause])
    assert (known == (serving == "stored")).all()  # silence beside words has none
    assert set(cause[known]) >= {"none", "threshold"}
    assert ((cause[known] == "none") == right[known]).all()


def test_a_fork_to_the_same_assistant_goes_on_as_if_nothing_had_happened(base: Run) -> None:
    trunk, fork, short = (base.turns(arm).drop_columns(["arm"]) for arm in ("toy", "fork", "short"))
    assert world.unlike(trunk, fork) == []
    early = trunk["turn"].to_numpy() < CUT
    assert (
        trunk.filter(pa.array(early))
        .drop_columns(["message"])
        .equals(short.filter(pa.array(early)).drop_columns(["message"]))
    )
    source = short["source_turn"].to_numpy()
    assert source[~early].max() >= CUT  # another one begins with nothing at the fork
    assert not ((source[~early] >= 0) & (source[~early] < CUT)).any()


def test_a_frozen_toy_learns_nothing_after_and_the_page_shows_the_effect(base: Run) -> None:
    live, frozen = (column(base, arm, "source_turn") for arm in ("toy", "frozen"))
    at = column(base, "toy", "turn")
    assert (live[at <= CUT] == frozen[at <= CUT]).all()
    assert live.max() >= CUT > frozen.max()
    assert call("run", *WORLD, table(*ARMS), f"out={base.path}", *_effect(base))[0] == 0
    assert "learned after turn 60 (against" in (base.path / "report.html").read_text("utf-8")


def _effect(made: Run) -> list[str]:
    fields = made.config["contrasts"][0]
    return ["contrasts=[{" + ", ".join(f"{key}: {value}" for key, value in fields.items()) + "}]"]


def test_an_assistant_is_chosen_at_the_root_and_overridden_by_an_arm(base: Run, tmp_path: Path, bare: None) -> None:
    root = run(tmp_path / "root", "assistant=toy", "arms={toy: [], skg: [assistant=pipeline]}", "reference=toy",
               "policy.threshold=0.3")  # fmt: skip
    for arm in ("toy", "skg"):
        assert world.differences(base, root, EVERYONE, [arm]) == []


# ---------------------------------------------------------------------------------------------------- the laws


@pytest.mark.usefixtures("bare")
def test_cohorts_and_workers_change_no_bit(base: Run, tmp_path: Path) -> None:
    other = run(tmp_path / "other", table(*THEIRS), "reference=toy", "cohort=4", "workers=2")
    assert world.differences(base, other, EVERYONE, THEIRS) == []


def test_a_run_that_is_killed_goes_on_to_the_same_bits(base: Run, tmp_path: Path, bare: None) -> None:
    out, words = tmp_path / "killed", [*WORLD, table(*THEIRS), "reference=toy", "cohort=1", "workers=1"]
    install(tmp_path / "site")
    path = os.pathsep.join([str(ROOT), str(tmp_path / "site")])
    process = subprocess.Popen(
        [sys.executable, "-m", "skg_bench", "run", *words, f"out={out}"], env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path,
    )  # fmt: skip
    while len(list(out.glob("[tp]*s/*.p*"))) < 3:
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert len(list(out.glob("[tp]*s/*.p*"))) < len(THEIRS) * len(EVERYONE)
    finished = run(out, *words[len(WORLD) :])
    assert world.differences(base, finished, EVERYONE, THEIRS) == []


@pytest.mark.parametrize("arm", ["toy", "diary"])
def test_the_truth_is_shuffled_and_no_decision_changes(tmp_path: Path, arm: str) -> None:
    plan = prepare(compose([*world.DENSE, "users=12", f"arms={{{arm}: [assistant={arm}]}}", f"reference={arm}"])).plan
    memory = Remembering(plan.simulator)
    first = world.carry_out(replace(plan, simulator=memory), tmp_path / "first", 12, 256)
    contrary = replace(plan.arms[0], llm=Contrary(plan.arms[0].llm))
    lies = replace(plan, arms=(contrary,), simulator=Lying(plan.simulator, memory, 1))
    second = world.carry_out(lies, tmp_path / "second", 12, 256)
    differ = {difference.split()[-1] for difference in world.differences(first, second, range(12), [arm])}
    assert differ <= TRUTH
    assert {"intent", "request_type", "answer_correct"} <= differ


# ------------------------------------------------------------------------------------------------ the commands


@pytest.mark.parametrize("reference", ["never", "skg", "toy", "diary"])
def test_arms_are_compared_whatever_the_reference(base: Run, tmp_path: Path, reference: str) -> None:
    figure = tmp_path / "figure.svg"
    code, out, _ = call("compare", str(base.path), "--reference", reference, "--flips", "9", "--figure", str(figure))
    assert code == 0
    assert "nan" not in out
    assert figure.is_file()
    if reference == "skg":
        told = ("an earlier answer, stored at turn", "  does not answer this: The earlier answer")
        assert all(words in out for words in (*told, "toy, diary, frozen, fork, short: no scores, or answers that"))
    if reference == "toy":
        assert "toy has no scores, or answers that nobody can judge; to match error rates, name another" in out


def test_what_is_not_known_is_absent_from_the_summary(base: Run) -> None:
    figures = json.loads((base.path / "summary.json").read_text("utf-8"))
    toy, diary = (figures["arms"][arm] for arm in ("toy", "diary"))
    assert toy["utility"]["mean"] is not None
    assert toy["hit_rate"]["mean"] > 0.2
    for name in ("skills", "new_skills_per_week"):
        assert toy[name]["mean"] is None
    for name in ("utility", "correct", "err_per_hit", "err_per_request", "skills"):
        assert diary[name]["mean"] is None
    assert diary["hit_rate"]["mean"] > 0.2
    assert {"skg", "never"} == set(figures["waterfall"])


def test_the_page_is_written_for_every_arm_and_user(base: Run, tmp_path: Path) -> None:
    page = (base.path / "report.html").read_text("utf-8")
    assert all(arm in page for arm in ARMS)
    code, _, _ = call("report", str(base.path), "--user", "1", "--user", "3")
    assert code == 0
    packed = (base.path / "report-users-1-3.html").read_text("utf-8")
    assert "an earlier answer" in packed
    for arms in (("toy", "diary"), ("diary", "toy")):
        alone = run(tmp_path / arms[0], table(*arms), f"reference={arms[0]}", "users=3")
        assert call("report", str(alone.path), "--user", "2")[0] == 0
        assert "NaN" not in (alone.path / "report.html").read_text("utf-8").split("<script", 1)[0]


def test_an_assistant_without_skills_answers_from_memory_and_from_no_skillbook(base: Run) -> None:
    figures = replace(summary.read_summary(base), learner="toy")
    (said,) = [sentence.text for sentence in verdict.words(figures) if "toy answered" in sentence.text]
    assert "of requests from memory" in said
    for name in ("hit_rate", "err_per_hit", "err_per_request", "right_per_hit"):
        assert "skillbook" not in figures.metrics[name].says


def test_an_arm_with_another_assistant_is_no_control_on_the_page(base: Run) -> None:
    from skg_bench.analysis.report.arm_looks import looks

    kinds = {x.arm: x.kind for x in looks(base.arms, "never", base.manifest["compositions"], base.config["arms"])}
    assert kinds == {"never": "control", "skg": "learning", "toy": "learning", "diary": "learning",
                     "frozen": "frozen", "fork": "learning", "short": "learning"}  # fmt: skip


def test_a_dry_run_shows_each_arm_with_the_parts_that_it_has() -> None:
    for arms in (("skg", "toy"), ("toy", "skg")):
        code, out, _ = call("run", *WORLD, table(*arms), f"reference={arms[0]}", "--dry-run")
        assert code == 0
        rows = {line.split()[0]: line for line in out.splitlines() if line.split()}
        assert re.search(r"Echo( .*)? - ", rows["toy"])
        assert re.search(r"Pipeline .*MaxSim", rows["skg"])


def test_skillbooks_of_an_arm_without_are_refused(base: Run, tmp_path: Path) -> None:
    for words in (("show", "--user", "1"), ("replay",), ("convert", "--out", str(tmp_path / "books"))):
        message = refused("skillbook", words[0], str(base.path), "--arm", "toy", *words[1:])
        assert "arm 'toy' has no skillbooks: its assistant is toys.toy.Echo" in message
    code, out, _ = call("skillbook", "replay", str(base.path))
    assert code == 0
    assert "toy" not in out


@pytest.mark.parametrize(("arm", "reference"), [("toy", "never"), ("toy", "skg"), ("diary", "never"), ("skg", "toy")])
def test_a_counterexample_is_found_and_replayed(base: Run, tmp_path: Path, arm: str, reference: str) -> None:
    file = tmp_path / "case.json"
    words = ("--arm", arm, "--reference", reference, "--out", str(file))
    code, out, err = call("counterexample", "find", str(base.path), *words)
    assert code == 0, err
    assert "earlier answer, " in out or reference != "never"
    assert call("counterexample", "replay", str(file))[0] == 0
    rows = json.loads(file.read_text("utf-8"))["expected"]["arm" if arm != "skg" else "reference"]
    assert {(row["max_sim"], row["book"], row["skill"]) for row in rows} == {(None,) * 3}
    assert {row["score"] is not None for row in rows} <= {False, arm == "diary"}


def test_traces_have_null_for_what_is_not_known(base: Run) -> None:
    path, _ = events.write_events(base, 2, None)
    traces = [json.loads(line)["trace"] for line in path.read_text("utf-8").splitlines()]
    toy = [trace for trace in traces if trace["metadata"]["arm"] == "toy"]
    assert {trace["name"] for trace in toy} == {"turn"}
    assert {trace["metadata"]["book_size"] for trace in toy} == {None}
    assert {"hit", "right"} in [set(trace["tags"]) - {"toy"} for trace in toy]


@pytest.mark.usefixtures("bare")
def test_the_gate_tells_equal_bits_and_judges_a_changed_parameter(
    base: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "uncommitted", list)
    anchors = {
        "never": ["policy=never", "curator=none"],
        "oracle": ["router=oracle", "policy=always", "curator=oracle"],
    }
    file, words = tmp_path / "baseline.json", (table("toy", **anchors), "reference=toy", "users=3")
    first, second = (as_if_committed(run(tmp_path / name, *words)) for name in ("first", "second"))
    changed = run(tmp_path / "changed", table(toy=["assistant=toy", "assistant.last=2"], **anchors), *words[1:])
    code, _, err = call("gate", "--baseline", str(file), "--update", str(first.path), "--arm", "toy", "--unproven")
    assert code == 0, err
    code, out, _ = call("gate", "--baseline", str(file), str(second.path), "--exact", "--unproven")
    assert (code, "the same bits" in out) == (0, True)
    case = tmp_path / "case.json"
    files = {"counterexample": case, "junit": tmp_path / "gate.xml", "markdown": tmp_path / "gate.md"}
    outputs = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    code, out, err = call("gate", "--baseline", str(file), str(changed.path), "--unproven", *outputs)
    assert code in (0, 1, 3), err
    assert "Gate" in out
    assert "same bits" not in out
    unjudged = as_if_committed(run(tmp_path / "diary", table("diary", **anchors), "reference=diary", "users=3"))
    other = str(tmp_path / "other.json")
    assert "that the world cannot judge" in refused(
        "gate", "--baseline", other, "--update", str(unjudged.path), "--arm", "diary", "--unproven"
    )


def test_a_log_is_replayed(tmp_path: Path) -> None:
    words = ("tea, how long", "rain today?")
    rows = [
        turn(f"user {user}", f"2024-03-{4 + day:02d}T09:0{user}:00", words[(day + user) % 2], answer="4",
             satisfaction=("miss", "ok", "")[day % 3])
        for day in range(8) for user in range(3)
    ]  # fmt: skip
    log = write_csv(tmp_path / "log.csv", rows)
    columns = "simulator.columns={user: user, time: time, message: message, answer: answer, satisfaction: satisfaction}"
    arms, out = table("never", "toy", "diary"), f"out={tmp_path / 'run'}"
    code, _, err = call("run", "simulator=recorded", f"simulator.path={log}", columns, "embedder=hashing", arms, out)
    assert code == 0, err
    replayed = Run(tmp_path / "run")
    assert (column(replayed, "toy", "source_turn") >= 0).sum() > 3
    cost, rating = column(replayed, "diary", "cost_usd"), column(replayed, "diary", "user_satisfaction")
    own = (column(replayed, "diary", "serving") == "llm") & (cost == 0)
    assert own.any()
    assert set(rating[own]) == {None}  # the log's rating is of the log's answer


# ------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("arm", "reason"),
    [
        ("assistant=diary, fork=diary@5", "fork needs a state that can be copied. toys.toy.Diary.start(1)"),
        ("assistant=diary, freeze=all, freeze_at=5", "freeze needs a state that can be copied. toys.toy.Diary"),
        ("assistant=diary, fork=diary@5, book=donor", "book=donor: toys.toy.Diary has no skillbook"),
        ("assistant=diary, scope=pool", "scope=pool: scope is a part of assistant=pipeline"),
        ("assistant=toy, fork=toy@5, book=donor", "book=donor: toys.toy.Echo has no skillbook"),
        ("assistant=toy, fork=toy@5, book=hindsight", "book=hindsight: toys.toy.Echo has no skillbook"),
        ("assistant=toy, freeze=book, freeze_at=4", "freeze=book: what toys.toy.Echo learns has no such parts"),
        ("assistant=toy, freeze=book+scorer, freeze_at=4", "freeze=book+scorer: what toys.toy.Echo learns"),
        ("assistant=toy, fork=skg@5", "fork=skg@5: toys.toy.Echo cannot go on from the skillbooks of skg"),
        ("fork=toy@5", "fork=toy@5: toy has no skillbook to go on from"),
        ("assistant=toy, policy=never", "policy=never: policy is a part of assistant=pipeline"),
        ("assistant=toy, router=exact", "router=exact: router is a part of assistant=pipeline"),
        ("assistant=toy, serving=prompted", "serving=prompted: serving is a part of assistant=pipeline"),
        ("assistant=toy, scope=pool", "scope=pool: scope is a part of assistant=pipeline"),
        ("assistant=toy, assistant.lst=3", "did you mean 'assistant.last'?"),
    ],
)
def test_an_arm_cannot_ask_for_what_its_assistant_has_not(arm: str, reason: str) -> None:
    arms = f"arms={{skg: [], toy: [assistant=toy], diary: [assistant=diary], it: [{arm}]}}"
    message = " ".join(refused("run", *WORLD, arms, "reference=skg", "--dry-run").split())
    assert "arm 'it'" in message
    assert reason in message


def test_values_of_the_root_for_pipelines_do_not_concern_it(base: Run, tmp_path: Path, bare: None) -> None:
    made = run(tmp_path / "run", table("toy", "skg"), "reference=toy", "refit_every=7", "scope=pool+user", "pool=2")
    assert world.differences(base, made, EVERYONE, ["toy"]) == []


WRONG = """
from dataclasses import replace
from toys.toy import Echo
import numpy as np

class Wrong(Echo):
    '''Gives replies that are none.'''
    def __init__(self, kind: str) -> None:
        super().__init__(3)
        self.kind = kind

    def answer(self, query, state):
        state, reply = super().answer(query, state)
        return {
            "shape": lambda: (state, replace(reply, how=reply.how[:1])),
            "range": lambda: (state, replace(reply, how=reply.how + 4)),
            "list": lambda: (state, replace(reply, how=reply.how.tolist())),
            "alone": lambda: reply,
            "none": lambda: (state, None),
        }[self.kind]()
"""


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("shape", "Reply.how has shape (1,); valid is [6]"),
        ("range", "Reply.how holds 4 to 4; valid are FALLBACK (0), STORED (1), PROMPTED (2) and PROCEDURE (3)"),
        ("list", "Reply.how is a list; valid is an array [6]"),
        ("alone", "gave a Reply; valid is (state, Reply)"),
        ("none", "gave a NoneType; valid is (state, Reply)"),
    ],
)
def test_a_wrong_reply_names_the_arm_and_the_assistant(toys: Path, tmp_path: Path, kind: str, reason: str) -> None:
    write(toys / "toys" / "wrong.py", WRONG)
    write(toys / "toys" / "conf" / "assistant" / "wrong.yaml", "_target_: toys.wrong.Wrong\nkind: shape\n")
    forget()
    arm = table("never", it=["assistant=wrong", f"assistant.kind={kind}"])
    message = " ".join(refused("run", *WORLD, arm, f"out={tmp_path / 'run'}").split())
    assert f"arm 'it': toys.wrong.Wrong.answer{' gave' if 'gave' in reason else ':'}" in message
    assert reason in message
