"""A log of one's own, from the command to the page: what is not known is said to be so."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import skg_bench
from skg_bench.analysis.report.people import CAP, timelines
from skg_bench.analysis.report.verdict import words
from skg_bench.analysis.summary import read_summary
from skg_bench.app.cli import app
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.app.skillbook.agentropy_folders import convert_to_agentropy
from skg_bench.app.skillbook.rebuilt import book, verify
from skg_bench.app.skillbook.shown import show_skillbook
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.simulator.answers import corpus
from tests.simulator.logs.logs import turn, write_csv

COLUMNS = (
    "simulator.columns={user: who, time: time, message: message, intent: intent, answer: answer, satisfaction: said}"
)
USERS, TURNS = 6, 40
UNJUDGED = ("utility", "correct", "err_per_hit", "err_per_request", "err_per_request_hits", "err_excess")


def log(folder: Path) -> Path:
    """A log of the built-in corpus' messages, whose vectors need no model."""
    rng, known = np.random.default_rng(7), corpus.load_corpus()
    rows = []
    for i in range(USERS * TURNS):
        kind = int(rng.integers(0, 12)) * 40
        words = known.messages[rng.choice(known.wordings[kind][: known.n_wordings[kind]])]
        day, hour = divmod(i // USERS, 3)
        row = turn(f"user {i % USERS}", f"2023-05-{1 + day:02d}T{9 + 4 * hour:02d}:{i % USERS:02d}:00", words)
        row["who"] = row.pop("user")
        rated = ("", "ok", "ok", "partial", "miss")[int(rng.integers(0, 5))]
        rows.append(row | {"intent": known.intents[known.intent[kind]], "answer": known.answers[kind], "said": rated})
    rows.append({**rows[0], "who": ""})
    return write_csv(folder / "log.csv", rows)


def overrides(path: Path, out: Path, *more: str) -> Sequence[str]:
    return ["simulator=recorded", f"simulator.path={path}", COLUMNS, "embedder=corpus_minilm", f"out={out}",
            "policy.threshold=0.4", *more]  # fmt: skip


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("log")
    return skg_bench.run(overrides(log(folder), folder / "run"))


def column(table: pa.Table, name: str) -> np.ndarray:
    return np.array(table[name].to_pylist(), dtype=object)


def test_the_simulator_brings_its_embedder_experiment_and_size_unless_others_are_chosen(tmp_path: Path) -> None:
    root = compose(["simulator=recorded"]).root
    assert (root["experiment"], root["profile"], root["users"], root["weeks"]) == ("recorded", "log", None, None)
    assert root["embedder"] == compose(["embedder=minilm"]).root["embedder"]
    assert "_with_" not in root["simulator"]
    other = compose(["simulator=recorded", "profile=smoke", "embedder=corpus_minilm"]).root
    assert (other["experiment"], other["profile"], other["users"]) == ("recorded", "smoke", 12)
    assert other["embedder"] == compose([]).root["embedder"]
    job = prepare(compose(overrides(log(tmp_path), tmp_path / "run", "profile=smoke")))
    assert (job.plan.users, job.plan.weeks) == (USERS, 2)  # no more than there are


def test_answers_are_not_judged_but_for_those_given_to_another_intent(replayed: Run) -> None:
    turns = replayed.turns("skg")
    right, hit = column(turns, "answer_correct"), ~turns["fallback_to_llm"].to_numpy()
    assert hit.sum() > 20
    assert set(right[~hit]) == {None}
    assert set(right[hit]) <= {None, False}
    source = {(u, t): i for u, t, i in zip(*(turns[c].to_pylist() for c in ("user", "turn", "intent")), strict=True)}
    rows = zip(*(turns[c].to_pylist() for c in ("user", "source_turn", "intent")), right, hit, strict=True)
    for user, turn_, intent, judged, answered in rows:
        if answered:
            assert (judged is False) == (source[user, turn_] != intent)
    for name in ("cause", "answerable"):
        assert turns[name].null_count == len(turns)
    assert column(turns, "skill_correct").tolist() == [
        value if h else None for value, h in zip(right, hit, strict=True)
    ]


def test_the_log_itself_is_what_the_arm_without_a_skillbook_gives(replayed: Run) -> None:
    turns = replayed.turns("never")
    assert turns["fallback_to_llm"].to_numpy().all()
    ratings = column(turns, "user_satisfaction")
    assert len(turns) == USERS * TURNS
    assert (ratings != None).sum() == replayed.feedback("never").num_rows  # noqa: E711
    assert set(ratings) == {"ok", "partial", "miss", None}


def test_a_hit_is_rated_where_it_returns_the_answer_of_the_log(replayed: Run) -> None:
    turns, as_it_was = replayed.turns("skg"), column(replayed.turns("never"), "user_satisfaction")
    ratings, hit = column(turns, "user_satisfaction"), ~turns["fallback_to_llm"].to_numpy()
    kinds, users = turns["request_type"].to_pylist(), turns["user"].to_pylist()
    kind_of = dict(zip(zip(users, turns["turn"].to_pylist(), strict=True), kinds, strict=True))
    sources = zip(users, turns["source_turn"].to_pylist(), strict=True)
    same = np.array([kind == kind_of.get(source) for kind, source in zip(kinds, sources, strict=True)])
    assert (hit & same).sum() > 10
    assert (hit & ~same).sum() > 0
    assert (ratings[hit & same] == as_it_was[hit & same]).all()
    assert set(ratings[hit & ~same]) == {None}
    assert (ratings[~hit] == as_it_was[~hit]).all()


def test_no_arm_sees_the_intents_of_a_log(replayed: Run, tmp_path: Path) -> None:
    blind = COLUMNS.replace("intent: intent, ", "")
    path = log(tmp_path)
    run = skg_bench.run(
        [*(blind if override == COLUMNS else override for override in overrides(path, tmp_path / "run"))]
    )
    for name in ("skill", "matched_skill", "skill_score", "propensity", "user_satisfaction", "book_hash"):
        assert run.turns("skg")[name].to_pylist() == replayed.turns("skg")[name].to_pylist(), name
    assert run.turns("skg")["answer_correct"].null_count == USERS * TURNS


def test_figures_that_need_truth_are_absent_and_the_rest_is_there(replayed: Run) -> None:
    figures = json.loads((replayed.path / "summary.json").read_text("utf-8"))
    for arm in replayed.arms:
        assert {figures["arms"][arm][name]["mean"] for name in UNJUDGED} == {None}
        assert figures["arms"][arm]["hit_rate"]["mean"] is not None
    skg = figures["arms"]["skg"]
    turns = replayed.turns("skg")
    wrong = np.array([value is False for value in turns["answer_correct"].to_pylist()])
    hit, user = ~turns["fallback_to_llm"].to_numpy(), turns["user"].to_numpy()
    shares = [wrong[user == u].sum() / hit[user == u].sum() for u in range(USERS)]
    assert skg["other_intent"]["mean"] == pytest.approx(np.mean(shares))
    assert figures["ceiling"] == figures["waterfall"] == {}
    assert figures["saturation"]["testable"]
    assert {arm_figures["utility"]["verdict"] for arm_figures in figures["differences"].values()} == {"not measured"}
    for name in ("hit_rate", "calls_saved", "rated_ok"):  # no arm is better by what says nothing about its answers
        verdicts = {arm_figures[name]["verdict"] for arm_figures in figures["differences"].values()}
        assert verdicts <= {"higher", "lower", "equal for every user", "inconclusive"}, name
    assert not {"right_per_hit", "pays_from"} & set(figures["metrics"])  # from how many on hits pay is not known
    assert figures["kinds"] == {}
    assert figures["log"] == replayed.manifest["log"]


def test_the_page_says_what_is_not_known_and_which_rows_were_left_out(replayed: Run) -> None:
    page = (replayed.path / "report.html").read_text("utf-8")
    assert "is not known in this log" in page
    assert "1 of 241 rows were left out: 1 with no user (row 242)" in page
    assert "6 users of a log" in page
    assert "Where utility is lost" not in page
    assert "Was the corpus used up?" not in page
    assert "a log has no offers to name a skill: each is accepted with probability 1" in page
    assert "no answer fits two intents: one that was given to another intent is wrong" in page
    assert "NaN" not in page.partition("<script>")[0]


def test_what_an_answer_to_another_intent_takes_for_granted_is_said_and_it_is_no_lower_bound(replayed: Run) -> None:
    summary = read_summary(replayed)
    share = summary.arms["skg"]["other_intent"].mean
    assert share is not None
    text = " ".join(sentence.text for sentence in words(summary))
    assert (
        f"of these {100 * share:.1f} % with an answer that had been given to another intent: wrong, unless one "
        "answer fits both" in text
    )
    says = (replayed.path / "report.html").read_text("utf-8") + text
    for bound in ("wrong at least", "wrongly at least", "nown to be wrong", "certainly"):
        assert bound not in says, bound


def test_offers_a_week_are_those_of_weeks_in_which_a_user_was_there(tmp_path: Path) -> None:
    """They were spread over the weeks of the whole log: who came for one week of twelve was hardly ever asked."""
    lines = log(tmp_path).read_text("utf-8").splitlines()
    some = [line for line in lines if line < "2023-05-08" or not (",user 1," in line or ",user 2," in line)]
    (tmp_path / "log.csv").write_text("\n".join(some) + "\n", "utf-8")
    run = skg_bench.run(overrides(tmp_path / "log.csv", tmp_path / "run"))
    turns = run.turns("skg", ["offer", "time"]).to_pandas()
    weeks = turns["time"].dt.isocalendar().week.groupby(turns["user"]).nunique()
    offers = turns.groupby("user")["offer"].count()
    assert weeks.nunique() > 1
    assert offers.sum() > 0
    shown = read_summary(run).arms["skg"]["offers_per_week"].mean
    assert shown == pytest.approx((offers / weeks).mean(), rel=0.02), (offers, weeks)


def test_books_are_rebuilt_from_the_log_of_a_replay(replayed: Run, capsys: pytest.CaptureFixture[str]) -> None:
    verify(replayed.path, ["skg", "everything"], USERS)
    assert "every state hash agrees" in capsys.readouterr().out


def test_compare_leaves_out_what_is_not_known(replayed: Run) -> None:
    done = CliRunner().invoke(app, ["compare", str(replayed.path), "--flips", "2"])
    assert done.exit_code == 0, done.output
    assert "a log does not say which answers were right" in done.output
    assert "--flips 2: there are none to show" in done.output
    assert "utility" not in done.output
    assert "hit rate" in done.output


def test_a_gate_and_a_counterexample_need_truth(replayed: Run, tmp_path: Path) -> None:
    gated = ["gate", str(replayed.path), "--baseline", str(tmp_path / "b.json"), "--update", "--arm", "skg"]
    for command in (gated, ["counterexample", "find", str(replayed.path), "--arm", "skg"]):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 2, done.output


@pytest.mark.parametrize(("arm", "message"), [
    ("[router=oracle,curator=oracle]", "knows which answers are right"),
    ("[policy=vcache]", "compares answers of the LLM"),
    ("[scope=pool]", "learns from people beside the users"),
    ("[fork=skg@5,curator=none,book=donor]", "learns from people beside the users"),
])  # fmt: skip
def test_arms_that_need_what_no_log_says_are_refused(tmp_path: Path, arm: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        prepare(compose(overrides(log(tmp_path), tmp_path / "run", f"+arms.other={arm}")))


@pytest.mark.parametrize("weeks", [None, 1])
def test_turns_of_a_log_are_counted_and_not_estimated_from_the_first_users(tmp_path: Path, weeks: int | None) -> None:
    rows = [
        turn(f"user {user}", f"2023-05-{1 + i % 14:02d}T09:{i:02d}:00", f"message {user} {i}")
        for user in range(90)
        for i in range(1 + user % 13)
    ]
    path = write_csv(tmp_path / "log.csv", rows)
    given = ["simulator=recorded", f"simulator.path={path}", "embedder=hashing", f"out={tmp_path / 'run'}",
             *([] if weeks is None else [f"weeks={weeks}"])]  # fmt: skip
    arms = 5
    turns = arms * sum(weeks is None or int(row["time"][8:10]) <= 7 for row in rows)
    assert prepare(compose(given)).turns() == turns
    done = CliRunner().invoke(app, ["run", *given, "--dry-run"])
    assert f"run (new), {turns:,} turns\n" in done.output
    done = CliRunner().invoke(app, ["run", *given, "seed=0,1", "--multirun", "--dry-run"])
    assert f"2 runs, {2 * turns:,} turns to simulate\n" in done.output


def test_all_of_a_log_is_refused_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="users=null means all of a recorded log, and this simulator replays none"):
        prepare(compose(["users=null"]))


def test_a_replay_is_the_same_bits_in_cohorts_of_any_size(replayed: Run, tmp_path: Path) -> None:
    again = skg_bench.run([*overrides(log(tmp_path), tmp_path / "run", "cohort=1")])
    for arm in replayed.arms:
        for table, other in (
            (again.turns(arm), replayed.turns(arm)),
            (again.updates(arm), replayed.updates(arm)),
            (again.feedback(arm), replayed.feedback(arm)),
        ):
            # dictionaries may be in another order; NaN is a word
            assert str(table.to_pylist()) == str(other.to_pylist())


# ------------------------------------------------------------------------------------------ clocks that are turned

TURNED = ("2026-10-25T00:30:00Z", "2026-10-25T00:50:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:55:00Z",
          "2026-10-25T22:30:00Z", "2026-10-25T23:30:00Z")  # fmt: skip
SHOWN = ["Sun 02:30", "Sun 02:50", "Sun 02:00", "Sun 02:55", "Sun 23:30", "Mon 00:30"]  # in Berlin


@pytest.fixture(scope="module")
def turned(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A user who says the same again and again in the night in which clocks are turned back, and on the day after."""
    folder, words = tmp_path_factory.mktemp("turned"), corpus.load_corpus().messages[0]
    rows = [turn("u", at, words, intent="i", answer="a", said="ok") for at in TURNED]
    path = write_csv(folder / "log.csv", [{"who" if k == "user" else k: v for k, v in row.items()} for row in rows])
    return skg_bench.run(overrides(path, folder / "run", "simulator.zone=Europe/Berlin"))


def test_a_replay_follows_instants_where_clocks_are_turned_back(turned: Run) -> None:
    minutes = [20, 10, 55, 20 * 60 + 35, 60]
    for arm in turned.arms:
        times = [row["time"] for row in turned.turns(arm).to_pylist()]
        assert [(b - a) / timedelta(minutes=1) for a, b in pairwise(times)] == minutes
        known = [row["known_at"] for row in turned.feedback(arm).to_pylist()]
        assert known == sorted(known)
    updates = turned.updates("skg")
    assert all(row["born"] is None or row["born"] <= row["time"] for row in updates.to_pylist())
    assert turned.turns("skg")["fallback_to_llm"].to_pylist() == [True] + [False] * 5


def test_books_remember_hours_and_weekends_of_the_users_clock(turned: Run) -> None:
    found = book(turned, "skg", 0)  # every state hash agrees
    (skill,) = found.skills
    assert skill.hours == (5, 0, 0, 0, 0, 0, 0, 1)
    assert skill.weekend == 5
    since = timedelta(seconds=skill.last_used - skill.born)
    assert since == timedelta(hours=23)


def test_people_are_shown_their_own_clock(turned: Run, capsys: pytest.CaptureFixture[str]) -> None:
    shown = timelines(turned, "skg", [0], CAP)[0]
    start = datetime.fromisoformat(shown.start)
    assert [f"{start + timedelta(seconds=at):%a %H:%M}" for at in shown.time] == SHOWN
    show_skillbook(turned.path, "skg", 0, 4)
    assert "2026-10-25" in capsys.readouterr().out  # the Sunday of the log, not yet the Monday after


def test_a_history_that_was_written_is_replayed_at_the_same_instants(turned: Run, tmp_path: Path) -> None:
    convert_to_agentropy(turned.path, "skg", [], tmp_path / "index", trust=True)
    lines = (tmp_path / "index" / "user-0" / "signals.jsonl").read_text("utf-8").splitlines()
    written = [datetime.fromisoformat(json.loads(line)["time"]) for line in lines]
    assert written == [datetime.fromisoformat(at) for at in TURNED]
    words = ["simulator=agentropy", f"simulator.path={tmp_path / 'index'}", "simulator.zone=Europe/Berlin"]
    again = skg_bench.run([*words, "embedder=corpus_minilm", f"out={tmp_path / 'run'}"])
    assert again.turns("never")["time"].to_pylist() == turned.turns("never")["time"].to_pylist()
    assert again.manifest["log"]["offsets"] == turned.manifest["log"]["offsets"]


# -------------------------------------------------------------------------------------------------- redaction


def test_redacted_messages_are_in_no_file_and_decisions_stay_the_same(replayed: Run, tmp_path: Path) -> None:
    path = log(tmp_path)
    hidden = skg_bench.run(overrides(path, tmp_path / "run", "simulator.redact=true"))
    known = corpus.load_corpus()
    used = set(replayed.turns("skg")["message"].to_pylist())
    assert used <= set(known.messages)
    for arm in hidden.arms:
        seen, plain = hidden.turns(arm), replayed.turns(arm)
        assert not set(seen["message"].to_pylist()) & used
        for name in ("skill", "source_turn", "max_sim", "skill_score", "user_satisfaction", "answer_correct"):
            assert seen[name].equals(plain[name]), name
        for name in ("matched_skill", "message"):
            before, after = plain[name].to_pylist(), seen[name].to_pylist()
            assert len(set(zip(before, after, strict=True))) == len(set(before)) == len(set(after))
    long = [words for words in used if len(words) > 12]
    slugs = {"-".join("".join(c if c.isalnum() else " " for c in words.lower()).split()[:4]) for words in long}
    for file in hidden.path.rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        assert not [words for words in (*long, *slugs) if words.encode() in content], file
    intents = set(replayed.turns("skg")["intent"].to_pylist()) - {None}
    assert intents
    for arm in hidden.arms:
        for name in ("intent", "request_type"):
            before, after = replayed.turns(arm)[name].to_pylist(), hidden.turns(arm)[name].to_pylist()
            assert not (set(before) & set(after)) - {None}, name
            assert len(set(zip(before, after, strict=True))) == len(set(before)) == len(set(after)), name
    for file in hidden.path.rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        assert not [name for name in intents if name.encode() in content], file
    figures = [json.loads((run.path / "summary.json").read_text("utf-8"))["arms"] for run in (replayed, hidden)]
    assert figures[0] == figures[1]
    assert (hidden.path / "curves.csv").read_bytes() == (replayed.path / "curves.csv").read_bytes()
    assert "pseudonyms, not anonymity" in (hidden.path / "report.html").read_text("utf-8")
    verify(hidden.path, ["skg"], 2)
