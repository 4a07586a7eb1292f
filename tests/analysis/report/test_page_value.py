"""The page is a value with types: the template and the scripts read its fields, all of them and no others."""

import re
from dataclasses import fields

import pytest
from jinja2 import Environment, meta

from skg_bench.analysis.report.assets import page_asset
from skg_bench.analysis.report.page_value import Page
from skg_bench.analysis.report.timeline import (
    AnswerTimeline,
    JobOnTimeline,
    LearnedOperation,
    ListedSkill,
    LoggedTurns,
    OutcomeTimeline,
    ShownSkill,
    WrittenOperation,
)

COMPUTED = {"id", "arm", "rules", "clock", "week", "operations", "changes"}  # by `load` of users.js
USERS, OUTCOME = str(page_asset("users.js")), str(page_asset("outcome.js"))


def names(kind: type) -> set[str]:
    return {f.name for f in fields(kind)}


def test_the_template_reads_each_field_of_the_page_and_nothing_else() -> None:
    template = Environment(autoescape=True).parse(str(page_asset("page.html.j2")))
    assert meta.find_undeclared_variables(template) - {"marked", "code"} == names(Page)


@pytest.mark.parametrize(("kind", "scripts"), [(AnswerTimeline, USERS), (OutcomeTimeline, USERS + OUTCOME)])
def test_the_scripts_read_each_column_of_a_timeline(kind: type, scripts: str) -> None:
    assert names(kind) - set(re.findall(r"\b(?:p|user)\.(\w+)", scripts)) == set()


def test_the_scripts_read_no_column_that_no_timeline_has() -> None:
    known = names(AnswerTimeline) | names(OutcomeTimeline) | COMPUTED
    assert set(re.findall(r"\bp\.(\w+)", USERS + OUTCOME)) - known == set()
    assert set(re.findall(r"\bp\.(\w+)", OUTCOME)) - names(OutcomeTimeline) - COMPUTED == set()
    assert set(re.findall(r"\blog\.(\w+)", USERS)) == names(LoggedTurns)


@pytest.mark.parametrize(
    ("row", "first", "script"),
    [(ListedSkill, 0, USERS), (LearnedOperation, 1, USERS), (ShownSkill, 0, OUTCOME), (JobOnTimeline, 0, OUTCOME),
     (WrittenOperation, 1, OUTCOME)],
)  # fmt: skip
def test_the_scripts_take_rows_apart_in_the_order_of_their_fields(row: type, first: int, script: str) -> None:
    columns = list(row.__annotations__)
    taken = [re.findall(r"\w+", inner) for inner in re.findall(r"\(\[,? ?(\w[\w, ]+)\]", script)]
    taken += [re.findall(r"\w+", inner) for inner in re.findall(r"\(p, \[,? ?(\w[\w, ]+)\]", script)]
    most = max((parts for parts in taken if parts[:2] == columns[first : first + 2]), key=len)
    assert len(most) >= 3
    assert most == columns[first : first + len(most)]
