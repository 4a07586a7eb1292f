"""Batches on a later version of the document that they were made from."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.skillbook.ace.book import COUNTERS, AceBook, Era
from skg_bench.skillbook.ace.changes import SETTABLE, Change, commit
from skg_bench.skillbook.rebase import Rebased, rebase, replayed

NOW = "2026-01-05T09:00:00+00:00"
TEXTS = (
    "Buys shoes at night when tired.", "Adds a second pair to reach free delivery.", "Compares prices for weeks.",
    "Buys gifts too late.", "Orders meals on rainy days.", "Returns half of the clothes.",
)  # fmt: skip


def values(era: Era, text: str) -> dict[str, Any]:
    if era == "v2":
        return {"issue": text, "insight": f"Wait: {text}", "keywords": ("impulse",)}
    return {"content": text}


def add(text: str, era: Era = "v2", section: str = "context") -> Change:
    return Change("ADD", None, {"section": section, **values(era, text)})


def tag(key: str, era: Era = "v2") -> Change:
    return Change("TAG", key, {COUNTERS[era][0]: 1} if COUNTERS[era] else {})


def update(key: str, text: str, era: Era = "v2") -> Change:
    return Change("UPDATE", key, values(era, text))


def remove(key: str) -> Change:
    return Change("REMOVE", key)


def book(*texts: str, era: Era = "v2") -> AceBook:
    return commit(AceBook(era), [add(text, era) for text in texts], NOW)


def fates(result: Rebased) -> list[str]:
    return [operation.fate for operation in result.report]


def after(base: AceBook, result: Rebased) -> AceBook:
    return commit(base, result.batch, NOW)


FIRST, SECOND = "context-00001", "context-00002"


def test_where_nothing_changed_meanwhile_a_batch_comes_back_as_it_is() -> None:
    read = book(TEXTS[0], TEXTS[1])
    batch = (tag(FIRST), update(FIRST, TEXTS[2]), remove(SECOND), tag(SECOND), add(TEXTS[0]), add(TEXTS[3]))
    assert rebase(batch, read, read) == (batch, rebase(batch, read, read).report)
    assert fates(rebase(batch, read, read)) == ["applied"] * 6


def test_an_add_gets_an_id_that_no_skill_has() -> None:
    read = book(TEXTS[0])
    now = commit(read, [add(TEXTS[1])], NOW)
    assert [*after(now, rebase([add(TEXTS[2])], read, now)).skills] == [FIRST, SECOND, "context-00003"]


@pytest.mark.parametrize("era", ["v1", "v09", "v2"])
def test_an_add_of_what_was_added_meanwhile_counts_as_a_tag_of_it(era: Era) -> None:
    read = book(era=era)
    now = commit(read, [add(TEXTS[1], era), add(TEXTS[0], era)], NOW)
    result = rebase([add(TEXTS[0], era)], read, now)
    assert fates(result) == ["merged"]
    assert result.report[0].skill_id == SECOND
    later = after(now, result)
    assert len(later.skills) == 2
    helpful = {"v1": "helpful", "v2": "helpful_count"}.get(era)
    assert helpful is None or getattr(later.skills[SECOND], helpful) == 1


def test_an_add_of_nearly_the_same_words_is_merged_by_the_threshold() -> None:
    read = book()
    now = commit(read, [add(" ".join(TEXTS))], NOW)
    other = add(" ".join((*reversed(TEXTS), "Always.")))
    assert fates(rebase([other], read, now)) == ["merged"]
    assert fates(rebase([other], read, now, alike=1.0)) == ["applied"]
    assert fates(rebase([add("Buys gifts too late.")], read, now)) == ["applied"]
    assert fates(rebase([add(" ".join(TEXTS), section="harness")], read, now)) == ["applied"]


def test_counters_of_a_merged_add_are_kept() -> None:
    read = book(era="v1")
    now = commit(read, [add(TEXTS[0], "v1")], NOW)
    change = add(TEXTS[0], "v1")
    counted = replace(change, values={**change.values, "helpful": 2, "harmful": 3})
    skill: Any = after(now, rebase([counted], read, now)).skills[FIRST]
    assert (skill.helpful, skill.harmful, skill.neutral) == (2, 3, 0)


def test_an_add_of_what_was_added_and_removed_meanwhile_stays() -> None:
    read = book()
    now = commit(commit(read, [add(TEXTS[0])], NOW), [remove(FIRST)], NOW)
    assert fates(rebase([add(TEXTS[0])], read, now)) == ["applied"]


def test_an_update_of_a_skill_that_was_updated_meanwhile_is_kept_aside() -> None:
    read = book(TEXTS[0], TEXTS[1])
    now = commit(read, [update(FIRST, TEXTS[2]), tag(SECOND)], NOW)
    batch = [update(FIRST, TEXTS[3]), update(FIRST, TEXTS[2]), update(SECOND, TEXTS[4])]
    result = rebase(batch, read, now)
    assert fates(result) == ["aside", "applied", "applied"]  # the second says what is there, the third follows a TAG
    later: Any = after(now, result).skills
    assert (later[FIRST].issue, later[SECOND].issue) == (TEXTS[2], TEXTS[4])


@pytest.mark.parametrize("era", ["v1", "v2"])
def test_operations_on_a_skill_that_was_removed_meanwhile_are_reported(era: Era) -> None:
    read = book(TEXTS[0], TEXTS[1], era=era)
    now = commit(read, [remove(FIRST)], NOW)
    batch = [tag(FIRST, era), update(FIRST, TEXTS[2], era), remove(FIRST), tag(SECOND, era)]
    result = rebase(batch, read, now)
    assert fates(result) == ["misdirected"] * 3 + ["applied"]
    assert result.batch == (tag(SECOND, era),)
    again = replayed(batch, now)
    assert fates(again) == ["misdirected"] * 3 + ["applied"]
    assert len(again.batch) == (1 if era == "v1" else 4)  # v2 hides a skill, and the package goes on changing it


def test_a_skill_that_was_given_the_id_meanwhile_is_not_meant() -> None:
    now = book(TEXTS[0])
    assert fates(rebase([tag(FIRST)], book(), now)) == ["misdirected"]


# ------------------------------------------------------------------------------------------- any interleaving


def counted(base: AceBook) -> int:
    return sum(getattr(skill, name) for skill in base.skills.values() for name in COUNTERS[base.era])


@st.composite
def operations(draw: st.DrawFn, base: AceBook) -> tuple[Change, ...]:
    """A batch that fits a book. In v1 no skill is removed, as its counters would go with it."""
    keys, batch = [skill.id for skill in base.active], list[Change]()
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(("ADD", "TAG", "UPDATE", "REMOVE")[: 4 if base.era == "v2" else 3]))
        text = draw(st.sampled_from(TEXTS))
        if kind == "ADD" or not keys:
            batch.append(add(text, base.era))
            continue
        key = draw(st.sampled_from(keys))
        batch.append({"TAG": tag(key, base.era), "UPDATE": update(key, text, base.era), "REMOVE": remove(key)}[kind])
        if kind == "REMOVE":
            keys.remove(key)
    return tuple(batch)


@pytest.mark.parametrize("era", ["v1", "v2"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
@pytest.mark.req("P26")
def test_for_any_interleaving_no_tag_and_no_add_is_lost_and_all_is_accounted_for(era: Era, data: st.DataObject) -> None:
    now, running = book(TEXTS[0], TEXTS[1], era=era), list[tuple[AceBook, tuple[Change, ...]]]()
    for _ in range(data.draw(st.integers(2, 12))):
        if not running or (len(running) < 5 and data.draw(st.booleans())):
            running.append((now, data.draw(operations(now))))  # a job starts, and reads
            continue
        read, batch = running.pop(data.draw(st.integers(0, len(running) - 1)))  # a job ends
        result = rebase(batch, read, now)
        assert [operation.change for operation in result.report] == [*batch]
        check(now, read, result)
        later = after(now, result)
        ends = [(operation.change.type, operation.fate) for operation in result.report]
        assert counted(later) == counted(now) + ends.count(("TAG", "applied")) + ends.count(("ADD", "merged"))
        assert len(later.skills) == len(now.skills) + ends.count(("ADD", "applied"))
        now = later


def check(now: AceBook, read: AceBook, result: Rebased) -> None:
    """Every fate has its reason in what happened meanwhile."""
    for change, fate, twin in ((op.change, op.fate, op.skill_id) for op in result.report):
        key = change.skill_id or ""
        if fate == "merged":
            skill = now.skills[twin or ""]
            assert change.type == "ADD"
            assert skill.active
            assert twin not in read.skills
            assert all(getattr(skill, name) == change.values[name] for name in SETTABLE[now.era])
        elif fate == "aside":
            assert change.type == "UPDATE"
            assert any(getattr(now.skills[key], name) != getattr(read.skills[key], name) for name in SETTABLE[now.era])
        elif fate == "misdirected":
            assert change.type != "ADD"
            assert key not in now.skills or not now.skills[key].active
        elif change.type != "ADD":
            assert now.skills[key].active or not read.skills[key].active
