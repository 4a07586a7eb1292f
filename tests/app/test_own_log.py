"""A log of one's own, as a spreadsheet exports it: from the file to the page, and from the page back to the file."""

import csv
import io
import json
import re
import shlex
import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skg_bench
from skg_bench.analysis.counts.metrics import logged
from skg_bench.analysis.counts.wording import interval
from skg_bench.analysis.report.logged import ENGLISH, language_sentences
from skg_bench.analysis.report.people import CAP, numbered, timelines
from skg_bench.analysis.statistics.intervals import Cells, estimates
from skg_bench.analysis.summary import read_summary
from skg_bench.analysis.summary.figures import Figure
from skg_bench.app.compose import composer
from skg_bench.app.overrides import parse
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.simulator.answers import corpus
from skg_bench.tracker import events
from tests.app.test_cli import call
from tests.runs import changed
from tests.simulator.logs.logs import turn, write_csv

HEADING = ("Vorgang", "Kunde", "Datum", "Frage", "Absicht", "Antwort", "Bewertung", "Kosten (USD)", "Wartezeit s")
MORE = ("embedder=corpus_minilm", "policy.threshold=0.4", "~arms.everything", "~arms.exact_match", "~arms.skg_rated")
RATED = {"gut": "ok", "neutral": "partial", "schlecht": "miss", "": None}
TURNS, TORN = 120, 'T-9999;Müller 1;12.03.2024 09:00;"torn'


def exported(path: Path) -> dict[str, dict[str, str]]:
    """A log as a German spreadsheet writes it, whose last line is torn; its rows by id."""
    rng, known, rows = np.random.default_rng(5), corpus.load_corpus(), []
    for i in range(TURNS):
        kind = int(rng.integers(0, 8)) * 40
        wording = known.messages[rng.choice(known.wordings[kind][: known.n_wordings[kind]])]
        answer = known.answers[kind] if rng.random() < 0.7 else f"Variante {i % 4}"
        cost, wait = (f"{rng.random() * size:.2f}".replace(".", ",") for size in (0.1, 9.0))
        when = f"{1 + i // 10:02d}.03.2024 {8 + i % 10:02d}:{i % 60:02d}"
        rated = str(rng.choice(list(RATED)))
        cells = (f"T-{1000 + i}", f"Müller {i % 4}", when, wording, known.intents[known.intent[kind]], answer, rated,
                 cost, wait)  # fmt: skip
        rows.append(dict(zip(HEADING, cells, strict=True)))
    text = io.StringIO(newline="")
    lines = csv.DictWriter(text, HEADING, delimiter=";")
    lines.writeheader()
    lines.writerows(rows)
    path.write_bytes((text.getvalue() + TORN).encode("cp1252", "replace"))
    return {row["Vorgang"]: row for row in rows}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Mapping[str, Mapping[str, str]], str]:
    """The run of the command that `data check` prints, the rows of its log, and all that was printed."""
    folder = tmp_path_factory.mktemp("own")
    rows = exported(folder / "export.csv")
    code, printed, _ = call("data", "check", str(folder / "export.csv"))
    assert code == 0
    program, command, *overrides = shlex.split(printed.strip().splitlines()[-1])
    assert (program, command) == ("skg-bench", "run")
    return skg_bench.run([*overrides, *MORE, f"out={folder / 'run'}"]), rows, printed


def test_ten_turns_are_as_they_stand_in_the_file(own: tuple[Run, Any, str]) -> None:
    run, rows, _ = own
    turns = run.turns("never").to_pylist()
    assert len(turns) == TURNS
    for turn_ in turns[:: TURNS // 10]:
        row = rows[turn_["logged_id"]]
        assert turn_["logged_row"] == 2 + list(rows).index(turn_["logged_id"])
        assert (turn_["logged_user"], turn_["logged_answer"]) == (row["Kunde"], row["Antwort"])
        assert turn_["message"] == row["Frage"].encode("cp1252", "replace").decode("cp1252")
        assert turn_["logged_time"] == datetime.strptime(row["Datum"], "%d.%m.%Y %H:%M")
        assert turn_["logged_cost_usd"] == pytest.approx(float(row["Kosten (USD)"].replace(",", ".")))
        assert turn_["logged_latency_ms"] == pytest.approx(1000 * float(row["Wartezeit s"].replace(",", ".")))
        assert (turn_["intent"], turn_["user_satisfaction"]) == (row["Absicht"], RATED[row["Bewertung"]])


def test_the_check_says_what_is_guessed_what_was_left_out_and_what_a_run_shows(own: tuple[Run, Any, str]) -> None:
    printed = own[2]
    for words in ("separated by ;, in cp1252", "day first, with points", "decimal comma", "taken for seconds",
                  "ok: gut; partial: neutral; miss: schlecht", "1 with a quote that is opened and not closed (row 122)",
                  "bounds on the share of wrong ones", "it does not show: whether an answer was right",
                  "a model of English (embedder=minilm)"):  # fmt: skip
        assert words in printed, words


def test_the_page_says_so_too_where_that_model_compared_the_messages(own: tuple[Run, Any, str], tmp_path: Path) -> None:
    assert language_sentences(own[0]) == []  # this run took vectors of the corpus
    run = Run(shutil.copytree(own[0].path, tmp_path / "run"))
    changed(run, config={**run.config, "embedder": composer().root(parse(["embedder=minilm"]))["embedder"]})
    code, _, err = call("report", str(run.path))
    assert (code, err) == (0, "")
    assert "a model of English (embedder=minilm)" in (run.path / "report.html").read_text("utf-8")
    assert skg_bench.explain(run.path)[0] == ENGLISH


def page(run: Run) -> dict[str, Any]:
    """What the page holds of its users, by their names in the log."""
    html = (run.path / "report.html").read_text("utf-8")
    packed = re.findall(r'<script[^>]* id="user-\d+"[^>]*>(.*?)</script>', html, re.DOTALL)
    return {timeline["log"]["user"]: timeline for timeline in map(json.loads, packed)}


def test_a_turn_on_the_page_is_joined_back_to_its_row_by_its_id(own: tuple[Run, Any, str]) -> None:
    run, rows, _ = own
    people = page(run)
    assert set(people) == {f"Müller {i}" for i in range(4)}
    for user, p in people.items():
        start = datetime.fromisoformat(p["start"])
        for i, id_ in enumerate(p["log"]["id"]):
            row = rows[id_]
            assert row["Kunde"] == user
            assert p["words"][p["log"]["logged_answer"][i]] == row["Antwort"]
            seconds = (datetime.strptime(row["Datum"], "%d.%m.%Y %H:%M") - start).total_seconds()
            assert p["time"][i] == seconds  # of March, not of January
    assert "Müller 3" in (run.path / "report.html").read_text("utf-8")


def test_a_hit_stands_beside_the_answer_of_the_log(own: tuple[Run, Any, str]) -> None:
    run, rows, _ = own
    turns = run.turns("skg").to_pylist()
    id_of = {(row["user"], row["turn"]): row["logged_id"] for row in turns}
    kinds = set()
    for row in turns:
        if row["fallback_to_llm"]:
            assert row["stored_answer"] is row["same_answer"] is row["same_intent"] is None
            continue
        asked, given = rows[row["logged_id"]], rows[id_of[row["user"], row["source_turn"]]]
        assert row["stored_answer"] == given["Antwort"]
        assert row["same_answer"] == (given["Antwort"] == asked["Antwort"])
        assert row["same_intent"] == (given["Absicht"] == asked["Absicht"])
        kinds.add((row["same_answer"], row["same_intent"]))
    assert {(True, True), (False, True)} <= kinds


def test_money_saved_is_that_of_the_log_to_the_cent_and_so_is_its_interval(own: tuple[Run, Any, str]) -> None:
    run, rows, _ = own
    turns = run.turns("skg").to_pandas()
    paid, waited = (
        np.array([float(rows[id_][name].replace(",", ".")) for id_ in turns.logged_id])
        for name in ("Kosten (USD)", "Wartezeit s")
    )
    hit = ~turns.fallback_to_llm
    assert 0 < hit.sum() < TURNS
    np.testing.assert_allclose(turns.cost_usd, np.where(hit, 0.0, paid), atol=1e-12)
    np.testing.assert_allclose(turns.latency_ms, np.where(hit, 50.0, 1000 * waited))
    np.testing.assert_allclose(run.turns("never").to_pandas().cost_usd, paid, atol=1e-12)

    table = turns.assign(saved=np.where(hit, paid, 0.0), about=turns.intent.astype(str)).groupby(["user", "about"])
    sums = table.saved.agg(["sum", "size"]).reset_index()
    cells = Cells(sums.user.to_numpy(), sums.about.astype("category").cat.codes.to_numpy().astype(np.int64), 4,
                  sums.about.nunique())  # fmt: skip
    (expected,) = estimates(cells, [sums["size"].to_numpy(float)], [[sums["sum"].to_numpy()]])
    figure, wanted = read_summary(run).arms["skg"]["cost_saved_usd"], Figure.of(expected, TURNS)
    per_user = table.saved.sum().groupby("user").sum() / turns.groupby("user").size()
    assert figure.mean == pytest.approx(per_user.mean())
    assert (figure.low, figure.high) == pytest.approx((wanted.low, wanted.high))
    html = (run.path / "report.html").read_text("utf-8")
    said = (
        f"would have saved ${paid[hit].sum():,.2f} of ${paid.sum():,.2f}: +${per_user.mean():.5f} a request of a user"
    )
    assert "By the log's own prices" in html.replace("&#39;", "'").replace("&#x27;", "'")
    assert said in html
    ends = interval(figure.low_new, figure.high_new, "usd", signed=True).replace("-", "\u2212")
    assert f"a request of a user (95\u202f% interval for new requests {ends})" in html
    (row,) = [row for row in skg_bench.compare(run, reference="never").rows
              if (row.arm, row.metric.name) == ("skg", "cost_usd")]  # fmt: skip
    assert row.difference.estimate.mean == pytest.approx(-per_user.mean())
    assert "simulated" not in row.metric.label


def test_a_turn_without_a_price_is_in_no_sum_under_any_arm(tmp_path: Path) -> None:
    rows = [
        turn(f"u{i % 3}", f"2024-03-{1 + i // 8:02d}T{8 + i % 8:02d}:00:00", corpus.load_corpus().messages[0],
             cost="" if i % 4 == 0 else f"{i / 100:.2f}")
        for i in range(48)
    ]  # fmt: skip
    path = write_csv(tmp_path / "log.csv", rows)
    given = ["simulator=recorded", f"simulator.path={path}", "simulator.columns={cost_usd: cost}", *MORE]
    run = skg_bench.run([*given, f"out={tmp_path / 'run'}"])
    for arm in ("skg", "never"):
        turns = run.turns(arm).to_pandas()
        assert (turns.cost_usd.isna() == turns.logged_cost_usd.isna()).all()
        priced = turns[turns.logged_cost_usd.notna()]
        expected = (priced.cost_usd.groupby(priced.user).sum() / priced.groupby("user").size()).mean()
        assert read_summary(run).arms[arm]["cost_usd"].mean == pytest.approx(expected)
        assert not turns.latency_ms.isna().any()
    html = (run.path / "report.html").read_text("utf-8")
    assert "12 of 48 requests have no price there" in html
    assert "NaN" not in html
    figures = {m.name: m for m in logged(("cost_usd",)).values()}
    assert (figures["cost_usd"].over, figures["latency_ms"].label) == ("priced", "wait, simulated")


def test_what_a_skill_of_the_old_system_cost_is_no_price_of_the_model(tmp_path: Path) -> None:
    """Half of the turns were answered by a skill, at no cost: nobody knows what the model would have cost there."""
    message = corpus.load_corpus().messages[0]
    rows = [
        turn(f"u{i % 3}", f"2024-03-{1 + i // 8:02d}T{8 + i % 8:02d}:00:00", message,
             cost="1.00" if i % 2 else "0", what="llm" if i % 2 else "skill")
        for i in range(48)
    ]  # fmt: skip
    columns = "simulator.columns={cost_usd: cost, action: what}"
    given = ["simulator=recorded", f"simulator.path={write_csv(tmp_path / 'log.csv', rows)}", columns, *MORE]
    run = skg_bench.run([*given, f"out={tmp_path / 'run'}"])
    never = run.turns("never").to_pandas()
    assert never.cost_usd.isna().sum() == 24
    assert (never.cost_usd.dropna() == 1.0).all()
    assert read_summary(run).arms["never"]["cost_usd"].mean == pytest.approx(1.0)


def test_euros_are_never_shown_as_dollars(tmp_path: Path) -> None:
    rows = [{**turn("u", f"2024-03-0{i + 1}T09:00:00", "hello"), "Kosten (EUR)": f"{i}.50"} for i in range(5)]
    path = str(write_csv(tmp_path / "log.csv", rows))
    code, printed, _ = call("data", "check", path)
    assert code == 0
    assert "Kosten" not in printed.strip().splitlines()[-1]
    with pytest.raises(UsageError, match=r"names EUR, and costs are in US dollars"):
        skg_bench.run(
            ["simulator=recorded", f"simulator.path={path}", "simulator.columns={cost_usd: 'Kosten (EUR)'}", *MORE]
        )


@pytest.mark.parametrize(
    "arm", [["serving=prompted"], ["assistant=python", "assistant.target=tests.app.test_probe.Counted"]]
)
def test_an_arm_that_asks_the_model_otherwise_is_refused_where_the_log_has_prices(
    own: tuple[Run, Any, str], tmp_path: Path, arm: list[str]
) -> None:
    table = f"+arms.other=[{','.join(arm)}]"
    words = [*own[0].manifest["overrides"], table, f"out={tmp_path / 'run'}"]
    with pytest.raises(UsageError, match="nobody knows what it would have cost with skills in its prompt"):
        skg_bench.run(words)


def test_users_are_asked_for_as_the_log_names_them(own: tuple[Run, Any, str]) -> None:
    run = own[0]
    (number,) = numbered(run, ["Müller 2"])
    log = timelines(run, "skg", [number], CAP)[number].log
    assert log is not None
    assert log.user == "Müller 2"
    assert call("report", str(run.path), "--user", "Müller 2")[0] == 0
    assert call("report", str(run.path), "--user", "1")[0] == 0
    with pytest.raises(
        UsageError, match=r"user Meier is not in .* it has users 0 to 3, or as the log names them, such as"
    ):
        numbered(run, ["Meier"])


def test_what_a_log_says_goes_to_trackers_and_is_hashed_there(own: tuple[Run, Any, str]) -> None:
    run, rows, _ = own
    for texts, hidden in (("full", False), (None, True)):
        path, _ = events.write_events(run, 1, texts)  # type: ignore[arg-type]
        lines = [json.loads(line)["trace"] for line in path.read_text("utf-8").splitlines()]
        about = [line["metadata"] for line in lines if "logged_row" in line["metadata"]]
        assert len(about) == len(run.arms) * TURNS // 4
        for metadata in about:
            row = list(rows.values())[metadata["logged_row"] - 2]
            assert metadata["logged_time"] == f"{datetime.strptime(row['Datum'], '%d.%m.%Y %H:%M').isoformat()}"
            pairs = (("logged_id", "Vorgang"), ("logged_user", "Kunde"), ("logged_answer", "Antwort"))
            assert all((metadata[name] == row[column]) is not hidden for name, column in pairs)


def test_what_a_log_says_of_people_is_hashed_where_it_is_redacted(own: tuple[Run, Any, str], tmp_path: Path) -> None:
    run, rows, _ = own
    hidden = skg_bench.run([*run.manifest["overrides"], "simulator.redact=true", f"out={tmp_path / 'run'}"])
    plain, turns = run.turns("skg"), hidden.turns("skg")
    for name in ("logged_user", "logged_id", "logged_answer", "stored_answer"):
        before, after = plain[name].to_pylist(), turns[name].to_pylist()
        assert len(set(zip(before, after, strict=True))) == len(set(before)) == len(set(after)), name
        assert not (set(before) & set(after)) - {None}, name
    for name in ("logged_row", "logged_time", "logged_cost_usd", "same_answer", "same_intent"):
        assert turns[name].to_pylist() == plain[name].to_pylist(), name
    words = {row[column] for row in rows.values() for column in ("Vorgang", "Kunde", "Antwort")} - {""}
    for file in hidden.path.rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        assert not [word for word in words if word.encode() in content], file


# ------------------------------------------------------------------------------------------------ a random log


@pytest.fixture(scope="module")
def random_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Messages, intents, answers and ratings that have nothing to do with one another."""
    folder, rng, known = tmp_path_factory.mktemp("random"), np.random.default_rng(11), corpus.load_corpus()
    some = [known.messages[known.wordings[40 * kind][0]] for kind in range(10)]
    rows = [
        turn(f"u{i % 8}", f"2024-03-{1 + i // 16:02d}T{8 + i % 16:02d}:00:00", str(rng.choice(some)),
             intent=f"intent {rng.integers(0, 3)}", answer=f"answer {rng.integers(0, 3)}",
             satisfaction=str(rng.choice(["", "ok", "partial", "miss"])))
        for i in range(320)
    ]  # fmt: skip
    path = write_csv(folder / "log.csv", rows)
    columns = "simulator.columns={intent: intent, answer: answer, satisfaction: satisfaction}"
    given = ["simulator=recorded", f"simulator.path={path}", columns, *MORE, "+arms.all=[curator=everything]"]
    return skg_bench.run([*given, f"out={folder / 'run'}"])


def test_bounds_hold_whatever_is_right_as_long_as_what_they_assume_is_true(random_run: Run) -> None:
    summary, rng = read_summary(random_run), np.random.default_rng(1)
    for arm in ("skg", "all"):
        turns = [row for row in random_run.turns(arm).to_pylist() if not row["fallback_to_llm"]]
        given = [row for row in random_run.feedback(arm, None).to_pylist() if row["kind"] == "rating"]
        rating = {(row["user"], row["turn"]): row["value"] for row in given}
        user = np.array([row["user"] for row in turns])
        low, high = [], []
        wrong = np.zeros(len(turns), np.bool_)
        for row in turns:
            rated = rating.get((row["user"], row["turn"]))
            certain = (not row["same_answer"] and row["same_intent"] is False) or rated == "miss"
            low.append(certain)
            high.append(not (row["same_answer"] and rated in (None, "ok")))
        bounds = {name: summary.arms[arm][name].mean or 0.0 for name in ("wrong_lower", "wrong_upper")}
        for _ in range(20):  # any truth under which the assumptions hold
            wrong = np.where(np.array(low) == np.array(high), low, rng.random(len(turns)) < rng.random())
            share = np.mean([wrong[user == u].mean() for u in np.unique(user)])
            assert bounds["wrong_lower"] <= share + 1e-9
            assert share <= bounds["wrong_upper"] + 1e-9
        for bound, ends in (("wrong_lower", low), ("wrong_upper", high)):  # and no others do
            share = np.mean([np.array(ends)[user == u].mean() for u in np.unique(user)])
            assert bounds[bound] == pytest.approx(share)
        assert 0 < bounds["wrong_lower"] < bounds["wrong_upper"] < 1


def test_a_random_log_gives_no_verdict(random_run: Run) -> None:
    summary = read_summary(random_run)
    for figures in summary.differences.values():
        for name, difference in figures.items():
            if name not in ("llm_calls", "tokens", "cost_usd", "latency_ms", "offers_per_week"):
                assert difference.verdict not in ("better", "worse"), name
    code, printed, _ = call("run", *random_run.manifest["overrides"], f"out={random_run.path}")
    assert code == 0
    assert "is not known in this log" in printed
    text = " ".join(printed.split())
    assert re.search(r"At least \d+\.\d % of the served answers of all are wrong: they belong to another intent", text)
    assert re.search(
        r"If the log's answers are right, at most \d+\.\d % are: all that differ from the log's answer", text
    )
