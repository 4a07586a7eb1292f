"""The page of a run in which skills are advice: what it shows in the place of answers, and a user's purchases."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from skg_bench.analysis import report, summary
from skg_bench.analysis.report import picture
from skg_bench.analysis.report.outcome_turns import outcome_turns
from skg_bench.analysis.report.people import CAP
from skg_bench.runfolder.run import Run
from skg_bench.simulator.advice.levels import OUTCOMES, SATISFACTIONS, TIERS
from tests.analysis.advised import LEARNED, REVISED, SEED, Purchase, drawn, make_advice_run
from tests.analysis.report.conftest import HOSTILE, turns_shown
from tests.analysis.report.test_page import Outline

Visit = Callable[..., Page]
LIFE = [
    Purchase("overridden", day=0.9, message="headphones, $80", learned=True, satisfaction="regret_it", wanted=False),
    Purchase("wait", strategy="time_cost", day=1.9, message=f"headphones, $60 {HOSTILE}", wanted=True),
    Purchase("auto_approved", "analyst", day=5.0, message="coffee, $4", satisfaction="worth_it", revised=True),
    Purchase("accepted", "negotiator", strategy="time_cost", day=9.0, message="shoes, $50", wanted=True),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    arms = {"guardian": [LIFE, *drawn(13, 20, 0.9)], "never": [_other(LIFE), *drawn(13, 20, 0.3)]}
    made = make_advice_run(tmp_path_factory.mktemp("advice") / "run", arms)
    summary.write_summary(made)
    return made


def _other(life: list[Purchase]) -> list[Purchase]:
    return [life[0], Purchase("overridden", day=1.9, message=life[1].message, wanted=True), *life[2:]]


@pytest.fixture(scope="module")
def path(run: Run) -> Path:
    return report.write_page(run)


@pytest.fixture(scope="module")
def own(run: Run) -> Path:
    """The page of the first user alone."""
    return report.write_page(run, [0])


def test_the_page_has_the_four_curves_of_its_world_and_nothing_of_answers(path: Path) -> None:
    text = path.read_text("utf-8")
    outline = Outline(text)
    assert (outline.open, outline.fetched) == ([], [])
    assert "img" not in outline.tags
    figures = ["utility", "listened", "regret", "skills", "sensitivity", "lifts"]
    assert re.findall(r'<figure id="f-(\w+)"', text) == figures
    assert '<th scope="col">Lift</th><th scope="col">Served</th><th scope="col">Content</th>' in text
    shown = text[: text.index('<script type="application/json" id="figures-data">')]
    shown = re.sub(r"<pre\b.*?</pre>", "", shown, flags=re.DOTALL)  # the manifest
    for words in ("Was the corpus used up", "could be answered", "Wrong per hit", "wrong per hit", "from memory",
                  "price of a wrong answer", "Ceiling k", "Hit, fallback", "Rated ok", "LLM alone"):  # fmt: skip
        assert words not in shown, words
    for words in ("Listened", "Regret", "Wanted, held back", "Not in the book", "Worn off", "Intervention", "Mood",
                  "264 purchases"):  # fmt: skip
        assert words in shown, words


def test_what_users_bring_are_purchases_wherever_it_is_named(path: Path) -> None:
    text = re.sub(r"<(script|style|pre)\b.*?</\1>", "", path.read_text("utf-8"), flags=re.DOTALL)
    shown = re.sub(r"<[^>]+>", " ", text)
    assert re.findall(r".{0,30}[Rr]equest.{0,30}", shown) == []
    for words in ("New purchases", "These purchases", "new users and purchases", "Purchase, turn",
                  "utility a purchase", "Strategies of the book"):  # fmt: skip
        assert words in shown, words


def test_the_chart_of_prices_marks_that_of_the_run(path: Path) -> None:
    text = path.read_text("utf-8")
    chart = text[text.index('<figure id="f-sensitivity"') :].partition("</figure>")[0]
    assert "one that was wanted costs 1 in this run." in chart
    labels = re.findall(r"<text[^>]*>([^<]+)</text>", chart[chart.index('<g class="places">') :].partition("</g>")[0])
    assert labels == ["price 0", "1", "2", "3", "5", "10"]
    assert chart.count('class="now"') == 1


def test_bands_hold_for_a_whole_curve(run: Run) -> None:
    rows = [line.split(",") for line in (run.path / "curves.csv").read_text("utf-8").splitlines()[1:]]
    for metric in ("utility", "listened", "regret", "skills"):
        for arm in run.arms:
            week = [row for row in rows if row[0] == arm and row[2] == metric]
            assert len(week) == 2
            assert all(float(low) <= float(mean) <= float(high) for *_, mean, low, high in week)


def test_the_waterfall_leads_from_the_best_kind_with_bars_that_are_no_links_to_causes(path: Path) -> None:
    text = path.read_text("utf-8")
    fall = text[text.index('<div id="losses"') : text.index('<section id="people"')]
    labels = re.findall(r'text-anchor="end">([A-Z][^<]+)</text>', fall)
    order = ["Best kind", "Not in the book", "Not chosen", "Worn off", "Luck", "Money and waiting", "Reached"]
    assert labels == order * 2  # of two arms
    assert "lost=" not in fall
    assert 'class="won"' in fall  # luck won something for one of them
    assert "Turns</th>" not in fall


def test_a_users_purchases_say_what_the_logs_say(run: Run) -> None:
    packed = outcome_turns(run, "guardian", [4], CAP)[4]
    turns, words = run.turns("guardian", None, [4]).to_pylist(), packed.words
    assert [words[m] for m in packed.message] == [row["message"] for row in turns]
    assert [TIERS[t] for t in packed.who] == [row["tier"] for row in turns]
    assert [OUTCOMES[o] for o in packed.did] == [row["outcome"] for row in turns]
    assert [bool(w) for w in packed.wanted] == [row["wanted"] for row in turns]
    assert packed.worths[0] == [round(1000 * row["worth"]) for row in turns]
    assert packed.served == [{"silent": 2, "prompted": 1, "llm": 0}[row["serving"]] for row in turns]
    feedback = [row for row in run.feedback("guardian", None, [4]).to_pylist() if row["kind"] == "satisfaction"]
    assert [(turn, SATISFACTIONS[value]) for turn, value, _ in packed.later] == [
        (row["turn"], row["value"]) for row in feedback
    ]
    jobs = run.learning("guardian", None, [4]).to_pylist()
    assert [(job[0], job[1], words[job[2]]) for job in packed.jobs] == [
        (row["turn"], row["about"], row["channel"]) for row in jobs
    ]
    assert packed.arms["never"] == "".join(
        str(OUTCOMES.index(o)) for o in run.turns("never", ["outcome"], [4])["outcome"].to_pylist()
    )
    assert packed.updates[0][:2] == (-1, "ADD")


def test_a_strategy_says_what_it_said_then(run: Run) -> None:
    packed = outcome_turns(run, "guardian", [0], CAP)[0]
    spoken = [None if k < 0 else packed.words[k] for k in packed.skill]
    learned = f"{LEARNED.issue}: {LEARNED.insight}"
    assert spoken == [None, learned, None, learned]
    at_hand = [[packed.words[text] for text, _, _ in shown] for shown in packed.shown]
    assert at_hand[1] == [SEED.issue, learned]
    assert [chosen for _, _, chosen in packed.shown[1]] == [0, 1]


def test_a_cut_history_keeps_the_book_that_was_given_and_its_later_answers(run: Run) -> None:
    packed = outcome_turns(run, "guardian", [4], 6)[4]
    assert len(packed.turn) == 6 < packed.n
    assert {turn for turn, *_ in packed.updates} <= {-1, *packed.turn}
    assert packed.updates[0][0] == -1


def test_the_picture_shows_utility_and_who_listened(run: Run) -> None:
    assert re.findall(r'<text class="title"[^>]*>([^<]+)<', picture.picture_svg(run)) == ["Utility", "Listened"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_user_is_told_purchase_by_purchase(visit: Visit, own: Path, scheme: str) -> None:
    page = visit(own, color_scheme=scheme)
    assert page.locator("#person h3").inner_text() == "User 0"
    assert turns_shown(page) == 4
    page.locator("#person .given summary").click()
    assert SEED.issue in page.locator("#person .given").inner_text()
    first, second, third = (page.locator("#person .turn").nth(n) for n in range(3))
    assert "generic question" in first.inner_text()
    assert "overridden, regret it" in first.inner_text()
    assert "+ learned" in first.inner_text()
    ends = [page.locator("#person .turn").nth(n).locator(".right, .wrong").inner_text() for n in range(4)]
    assert ends == ["bought, not wanted", "held back, wanted", "bought, not wanted", "bought, wanted"]
    first.locator("summary").click()
    text = first.locator(".why").inner_text()
    for words in ("The therapist asked the generic question.", "Overridden: bought all the same.",
                  "From overridden (outcome, applied): “the user felt lectured”; harmful: general-00001; new learnings",
                  LEARNED.issue, "3 days later: regret it.", "said of turn 0 (satisfaction, unchanged)",
                  "The skillbook stayed as it was at turn 2.",
                  "The purchase was bought, and was not really wanted.",
                  "never overridden"):  # fmt: skip
        assert words in text, words
    assert HOSTILE.replace("\u2028", "") in second.inner_text().replace("\u2028", "")
    second.locator("summary").click()
    text = second.locator(".why").inner_text()
    assert f"The therapist used “{LEARNED.issue}: {LEARNED.insight}”. It is chosen with probability 0.250." in text
    assert "Waited a day." in text
    assert "really of the kind time cost" in text
    third.locator("summary").click()
    text = third.locator(".why").inner_text()
    assert "The analyst said nothing." in text
    changed = text[text.index("3 days later: worth it.") :]
    assert "The skillbook changed by it at turn 3:" in changed
    assert re.search(rf"UPDATE {REVISED.issue}, section time_cost \(revised\)", changed)


def test_a_book_that_was_given_with_ratings_is_counted_in_skills(visit: Visit, own: Path, tmp_path: Path) -> None:
    text = own.read_text("utf-8")
    begun = '"updates":[[-1,"ADD"'
    assert text.count(begun) == 2  # one in each arm
    ratings = "".join(f'[-{turn},"TAG",0,-1,0,1,0,-1],' for turn in (2, 1))
    rated = tmp_path / "rated.html"
    rated.write_text(text.replace(begun, f'"updates":[{ratings}[-1,"ADD"'), "utf-8")
    given = visit(rated).locator("#person .given")
    assert given.locator("summary").inner_text() == "The skillbook began with 1 skill, with 2 ratings"
    given.locator("summary").click()
    assert given.locator("li").count() == 1


@pytest.mark.parametrize("width", [1200, 400])
def test_a_purchase_has_room_for_its_message_and_two_lines_of_its_strategy(visit: Visit, own: Path, width: int) -> None:
    page = visit(own)
    page.set_viewport_size({"width": width, "height": 900})
    turn = page.locator("#person .turn").nth(1)
    message, strategy = turn.locator(".message").bounding_box(), turn.locator(".by").bounding_box()
    assert message is not None
    assert strategy is not None
    assert message["width"] > 270
    assert strategy["width"] > 270
    assert strategy["y"] >= message["y"] + message["height"]
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_filters_count_what_the_log_holds(visit: Visit, path: Path, run: Run) -> None:
    page = visit(path)
    user = int(str(page.locator("#users tbody tr.open").get_attribute("data-user")))
    turns = run.turns("guardian", None, [user]).to_pylist()
    listened = [row["outcome"] in ("accepted", "wait", "abandoned") for row in turns]
    overridden = [row["outcome"] == "overridden" for row in turns]
    for name, count in (("taken", sum(listened)), ("refused", sum(overridden))):
        page.locator(f"[data-filter={name}]").click()
        assert turns_shown(page) == count
        page.locator(f"[data-filter={name}]").click()
    titles = " ".join(page.locator("#person .strip button").nth(n).get_attribute("title") or "" for n in range(2))
    assert sum(map(int, re.findall(r"(\d+) listened", titles))) == sum(listened)
    assert sum(map(int, re.findall(r"(\d+) overridden", titles))) == sum(overridden)


def test_a_bar_leads_to_the_purchases_that_ended_differently(visit: Visit, path: Path, run: Run) -> None:
    page = visit(path, "#arm=guardian&against=never")
    shown = [int(row.get_attribute("data-user") or "") for row in page.locator("#users tbody tr").all()]
    ends = [run.turns(arm, ["outcome"], shown)["outcome"].to_pylist() for arm in run.arms]
    assert page.locator("#person h3").inner_text() == "Purchases that ended differently under guardian and never"
    assert turns_shown(page) == sum(a != b for a, b in zip(*ends, strict=True)) > 0


def test_what_the_page_holds_is_json_that_ends_no_script(path: Path) -> None:
    blocks = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', path.read_text("utf-8"), re.S)
    assert len(blocks) == 2 + 2 * 12
    assert json.loads(blocks[1])["outcome"]["who"] == list(TIERS)
    assert not any(set("<>&\u2028") & set(block) for block in blocks)
