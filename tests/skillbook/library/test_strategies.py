"""What `data/guardian` holds, and how texts and triggers are read with it."""

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from experiments.curators import reader
from experiments.curators.reader import LEAST, accuracy, analyse, left_out, paraphrased
from skg_bench.core.content import Content
from skg_bench.core.package import DATA
from skg_bench.skillbook.ace import codec
from skg_bench.skillbook.ace.book import Era
from skg_bench.skillbook.conversion import from_ace
from skg_bench.skillbook.library.strategies import strategies
from skg_bench.skillbook.skillbook import Skill
from skg_bench.skillbook.word_cosines import WordCosines

HOME, TABLE = DATA / "guardian", strategies()
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
FORM = re.compile(r"(In the morning|At midday|In the evening|Late at night), (\w+): .+ for \$(\d+) at .+")

# ------------------------------------------------------------------------------------------------- what there is


def test_there_are_twelve_kinds_with_twenty_texts_each_of_which_three_are_vague() -> None:
    assert len(TABLE.kinds) == len(set(TABLE.kinds)) == 12
    assert {"impulse-check-generic", "time-cost-framing"} <= set(TABLE.kinds)
    assert np.bincount(TABLE.kind).tolist() == [20] * 12
    assert np.bincount(TABLE.kind, ~TABLE.sound).tolist() == [3] * 12
    assert len(TABLE.contents) == len(TABLE.kind) == len(TABLE.sound) == 240


def test_persuading_and_discerning_are_within_what_is_assumed_and_do_not_go_together() -> None:
    assert TABLE.persuades.min() >= -1.2
    assert TABLE.persuades.max() <= -0.2
    assert TABLE.discerns.min() >= 0
    assert TABLE.discerns.max() <= 1.5
    assert TABLE.discerns[TABLE.persuades.argmax()] == TABLE.discerns.min()


def test_fit_is_standardised_over_all_cells_and_lies_on_the_grid() -> None:
    assert TABLE.fit.shape == (12, len(TABLE.categories) * len(TABLE.times)) == (12, 48)
    assert TABLE.fit.mean() == pytest.approx(0, abs=1e-4)
    assert TABLE.fit.std() == pytest.approx(1, abs=1e-4)
    assert (TABLE.fit * 65_536 % 1 == 0).all()


def test_fit_is_the_sum_of_a_category_and_a_time() -> None:
    cells = TABLE.fit.reshape(12, 12, 4)
    sums = cells[:, :, :1] + cells[:, :1, :] - cells[:, :1, :1]
    assert cells == pytest.approx(sums, abs=1e-4)
    night = TABLE.times.index("late at night")
    hours, generic = TABLE.kinds.index("time-cost-framing"), TABLE.kinds.index("impulse-check-generic")
    electronics = TABLE.categories.index("electronics")
    assert cells[hours, electronics, night] > 1 > -1 > cells[generic, electronics, night]


def test_no_kind_is_best_everywhere() -> None:
    best = (TABLE.persuades[:, None] + TABLE.fit).argmax(axis=0)
    assert len(set(best.tolist())) >= 8
    assert max(Counter(best.tolist()).values()) <= 12


def test_texts_are_distinct_and_those_of_schema_2() -> None:
    for content, sound in zip(TABLE.contents, TABLE.sound.tolist(), strict=True):
        assert content.section == "context"
        assert content.insight
        assert content.keywords
        assert len(content.insight) > 80 if sound else len(content.insight) < 60
    for part in ("issue", "insight"):
        assert len({getattr(content, part).casefold() for content in TABLE.contents}) >= 239
    texts = [f"{content.issue} {content.insight}" for content in TABLE.contents]
    alike = WordCosines(texts).of(texts)
    np.fill_diagonal(alike, 0)
    assert alike.max() < 0.75


def test_every_context_and_price_band_has_six_triggers_or_more_and_no_text_comes_twice() -> None:
    triggers = TABLE.triggers
    assert len(triggers.text) == len(set(triggers.text)) >= 2_000
    cells = Counter(zip(triggers.category.tolist(), triggers.time.tolist(), triggers.band.tolist(), strict=True))
    assert len(cells) == 12 * 4 * 6
    assert min(cells.values()) >= 6


def test_a_trigger_names_its_category_time_and_price_and_its_band_is_that_of_the_price() -> None:
    triggers = TABLE.triggers
    assert np.array_equal(triggers.band, np.searchsorted([15, 40, 80, 150, 400], triggers.price, side="right"))
    for i, text in enumerate(triggers.text):
        match = FORM.fullmatch(text)
        assert match, text
        assert match[2] == TABLE.categories[triggers.category[i]]
        assert int(match[3]) == triggers.price[i]
        assert TABLE.context_of(text) == triggers.category[i] * len(TABLE.times) + triggers.time[i]


@pytest.mark.req("P32")
def test_the_two_purchases_that_the_article_tells_of_are_among_the_triggers() -> None:
    assert "Late at night, electronics: noise-cancelling headphones for $80 at BestBuy" in TABLE.triggers.text
    assert "Late at night, electronics: noise-cancelling headphones for $60 at Amazon" in TABLE.triggers.text


# -------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(("text", "category", "time"), [
    ("Late-night electronics, $80", "electronics", "late at night"),
    ("a coffee in the MORNING", "coffee", "morning"),
    ("In the evening, home: a coffee table for $60 at IKEA", "home", "evening"),
    ("Travel plans, made at midday", "travel", "midday"),
])  # fmt: skip
def test_a_text_that_names_one_category_and_one_time_is_of_their_context(text: str, category: str, time: str) -> None:
    assert TABLE.context_of(text) == TABLE.categories.index(category) * 4 + TABLE.times.index(time)


@pytest.mark.parametrize("text", [
    "", "electronics", "late at night", "electronics and games in the evening", "coffee, morning or evening",
    "homework in the evening", "electronics at night",
])  # fmt: skip
def test_other_texts_are_of_no_context(text: str) -> None:
    assert TABLE.context_of(text) == -1


def test_texts_of_the_table_are_read_as_the_table_says() -> None:
    kind, sound = TABLE.read(TABLE.contents)
    assert np.array_equal(kind, TABLE.kind)
    assert np.array_equal(sound, TABLE.sound)
    assert kind.dtype == np.int32
    assert sound.dtype == np.bool_
    assert [len(column) for column in TABLE.read([])] == [0, 0]


def test_a_text_is_read_alike_in_any_company_and_by_its_words_alone() -> None:
    new = [Content("harness", f"{content.issue} {content.insight}") for content in TABLE.contents]
    kind, sound = TABLE.read(new)
    assert (kind == TABLE.kind).mean() > 0.97
    assert (sound == TABLE.sound).mean() > 0.97
    for i in range(0, 240, 7):
        alone = TABLE.read([Content("another section", new[i].issue.upper())])
        assert (alone[0][0], alone[1][0]) == (kind[i], sound[i])
    mixed = TABLE.read([new[5], TABLE.contents[30], new[239]])
    assert mixed[0].tolist() == [kind[5], TABLE.kind[30], kind[239]]


def test_the_kind_is_nearest_on_average_and_soundness_that_of_the_nearest_text_of_this_kind() -> None:
    texts = ["wait delta", "wait echo", "coffee wait", "mocha", "latte", "filter"]
    kind, sound = np.array([0, 0, 1, 1, 1, 1], np.int32), np.array([True, True, False, True, True, True])
    contents = tuple(Content("context", text) for text in texts)
    table = replace(TABLE, kinds=TABLE.kinds[:2], contents=contents, kind=kind, sound=sound)
    assert [column.tolist() for column in table.read([Content("context", "wait, coffee")])] == [[0], [True]]
    assert [column.tolist() for column in table.read([Content("context", "coffee")])] == [[1], [False]]
    assert [column.tolist() for column in table.read([Content("context", "latte")])] == [[1], [True]]


def test_a_text_without_a_word_of_the_table_is_of_the_first_kind_and_unsound() -> None:
    kind, sound = TABLE.read([Content("context", "Schmetterlinge 蝶"), TABLE.contents[-1]])
    assert (kind[0], sound[0]) == (0, False)
    assert (kind[1], sound[1]) == (TABLE.kind[-1], TABLE.sound[-1])


def test_at_least_300_texts_that_the_reader_does_not_know_are_read_rightly_as_often_as_stated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, others = list(left_out(TABLE)), list(paraphrased(TABLE))
    monkeypatch.setattr(reader, "left_out", lambda table: own if table is TABLE else left_out(table))  # 2 s
    assert len(own) + len(others) >= 300
    assert accuracy([*own, *others]) >= LEAST == 0.93
    assert accuracy(others) >= 0.94
    report = analyse()
    assert report.holds
    assert "| all | 324 | 302 | 93% read rightly |" in report.page


# ------------------------------------------------------------------------------------------------------ seed books


def seed(name: str, era: Era) -> tuple[Skill, ...]:
    text = (HOME / f"{name}.{era}.json").read_text("utf-8")
    book = codec.loads(text, era, MONDAY.isoformat())
    assert codec.dumps(book) + "\n" == text
    converted = from_ace(book, MONDAY)
    assert converted.losses == {}
    return converted.book.skills


def kinds_of(skills: tuple[Skill, ...]) -> list[str]:
    contents = [skill.content for skill in skills if skill.content is not None]
    kind, sound = TABLE.read(contents)
    assert sound.all()
    return [TABLE.kinds[i] for i in kind.tolist()]


def helpful(skills: tuple[Skill, ...]) -> float:
    return sum(skill.ok for skill in skills) / sum(skill.uses for skill in skills)


def most_used(skills: tuple[Skill, ...]) -> str:
    uses: Counter[str] = Counter()
    for kind, skill in zip(kinds_of(skills), skills, strict=True):
        uses[kind] += skill.uses
    return uses.most_common()[0][0]


@pytest.mark.req("P46")
@pytest.mark.parametrize("era", ["v1", "v2"])
def test_the_beginners_book_has_four_skills_and_asks_the_generic_question_most(era: Era) -> None:
    skills = seed("rookie", era)
    assert [skill.active for skill in skills] == [True] * 4
    assert kinds_of(skills) == ["impulse-check-generic", "cooling-off", "budget-goal", "price-comparison"]
    assert most_used(skills) == "impulse-check-generic"
    assert helpful(skills) == pytest.approx(0.30)


@pytest.mark.req("P48")
@pytest.mark.parametrize("era", ["v1", "v2"])
def test_the_experts_book_has_eight_to_ten_skills_and_names_hours_of_work_most(era: Era) -> None:
    skills = seed("pro", era)
    assert 8 <= sum(skill.active for skill in skills) <= 10
    assert most_used(skills) == "time-cost-framing"
    assert helpful(skills) >= 0.70
    assert len(set(kinds_of(skills))) == 8


@pytest.mark.parametrize("name", ["rookie", "pro"])
def test_a_seed_book_says_the_same_in_both_formats(name: str) -> None:
    old, new = seed(name, "v1"), seed(name, "v2")
    assert kinds_of(old) == kinds_of(new)
    for before, after in zip(old, new, strict=True):
        assert (before.ok, before.miss, before.partial) == (after.ok, after.miss, after.partial)
        assert after.content in TABLE.contents
        assert before.content is not None
        assert after.content is not None
        assert before.content.issue == f"{after.content.issue}\n\n{after.content.insight}"
        assert before.content.section == kinds_of((before,))[0]
