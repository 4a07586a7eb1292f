"""A file of what users tell: its tellings come as it says, and rows that say nothing sound are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from skg_bench.core.calendar import DAY
from skg_bench.core.errors import UsageError
from skg_bench.simulator.facts.table import TELLING
from skg_bench.simulator.facts.world import FactUsers
from tests.app.test_cli import call
from tests.simulator.facts.fact_runs import world

ROWS: list[dict[str, Any]] = [
    {"user": 1, "fact": "guest_wifi", "day": 2, "way": "tells", "value": "sunny-attic-9"},
    {"user": 1, "fact": "guest_wifi", "day": 9, "way": "changes", "value": "owl-and-moon"},
    {"user": 1, "fact": "guest_wifi", "day": 20.5, "way": "ends"},
    {"user": 3, "fact": "guest_diet|Anna", "day": 1, "way": "implied", "value": "vegan"},
    {"user": 3, "fact": "guest_diet|Anna", "day": 400, "way": "ends"},
]


def users(folder: Path, rows: object) -> FactUsers:
    file = folder / "told.yaml"
    file.write_text(yaml.safe_dump(rows), "utf-8")
    return world(f"simulator.tellings={file}")


def test_users_tell_what_the_file_says_when_it_says(tmp_path: Path) -> None:
    made = users(tmp_path, ROWS)
    state = made.begin(3, np.arange(5, dtype=np.int32), 4)
    events = state.users.events
    told = [
        (row, events.time[row, turn] / DAY, made.messages[events.text[row, turn]])
        for row in range(5)
        for turn in range(events.n[row])
        if state.needs.knower[row, events.number[row, turn]] == TELLING
    ]
    assert [each[:2] for each in told] == [(1, 2), (1, 9), (1, 20.5), (3, 1)]  # day 400 is behind the horizon
    texts = [each[2] for each in told]
    assert ["sunny-attic-9" in texts[0], "owl-and-moon" in texts[1], "vegan" in texts[3]] == [True] * 3
    assert (made.count(3, np.arange(5, dtype=np.int32), 4) == events.n).all()
    assert made.digest != world().digest


def changed(at: int, **fields: Any) -> list[dict[str, Any]]:
    """The rows, one of them with other fields; None: without the field."""
    row = {key: value for key, value in (ROWS[at] | fields).items() if value is not None}
    return [*ROWS[:at], row, *ROWS[at + 1 :]]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (changed(0, user=None), "row 1: user=None, valid is the number of the fact's owner"),
        (changed(0, user="Anna"), "row 1: user='Anna'"),
        (changed(1, day=None), "row 2: day=None, valid is the time of the message in days"),
        (changed(1, day=-1), "row 2: day=-1"),
        (changed(1, day=1), "row 2: changes before the fact was told; valid is first tells or implied"),
        (changed(2, day=0.5), "row 3: ends before the fact was told"),
        (changed(1, day=2), "row 2: the user tells the same fact at this time twice"),
        (changed(1, way="tells"), "row 2: tells another value than before; valid is way: changes"),
        (changed(1, way="moves"), "row 2: way='moves', valid are tells, changes, implied, ends"),
        (changed(2, value="owl-and-moon"), "row 3: value='owl-and-moon'; leave it out"),
        (changed(3, value="hungry"), "row 4: value='hungry', valid are vegan"),
        (changed(3, fact="shoe_size"), "row 4: fact='shoe_size', valid are "),
        (changed(3, colour="red"), "row 4: .*valid are the fields user, fact, day, way, value"),
        ({"user": 1}, "must be a list of rows"),
    ],
)
def test_a_row_that_says_nothing_sound_is_refused(rows: object, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        users(tmp_path, rows).begin(3, np.arange(5, dtype=np.int32), 4)


def test_an_end_before_the_beginning_ends_the_command_with_exit_code_2(tmp_path: Path) -> None:
    file = tmp_path / "told.yaml"
    file.write_text(yaml.safe_dump(changed(2, day=0.5)), "utf-8")
    code, out, error = call(
        "run", "simulator=facts", f"simulator.tellings={file}", "users=2", "weeks=1", f"out={tmp_path / 'run'}"
    )
    assert code == 2
    assert "row 3: ends before" in (out + error).replace("\n", " ")
