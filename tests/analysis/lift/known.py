"""All skills of a run of 100 users and 12 weeks with first-order and exact lift: a set on which samples are tried.

`python -m tests.analysis.lift.known --write` plays the run again without each skill, which takes a minute.
"""

import csv
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import skg_bench
from skg_bench.analysis.lift.first_order import Lifts
from skg_bench.app.left_out import exact_lifts
from skg_bench.app.skill_lift import show_worths, skill_worths
from skg_bench.core.grid import F64

FILE = Path(__file__).with_name("known.csv")
_ARMS = {"never": ["policy=never", "curator=none"], "skg": []}
_RUN = ("users=100", "weeks=12", "seed=3", "workers=1", "reference=never", f"arms={json.dumps(_ARMS)}")
COLUMNS = ("user", "skill", "served", "lift", "exact")


def known() -> tuple[Lifts, F64]:
    """Skills, and their exact lifts `[S]`."""
    user, skill, served, first, exact = np.loadtxt(FILE, delimiter=",", skiprows=1).T
    users, row = np.unique(user.astype(np.int32), return_inverse=True)
    n = len(row)
    zeros = np.zeros(n, np.int64)
    lifts = Lifts(
        noun="skills",
        users=users, turns=np.ones((len(users), 2), np.int64), user=row.astype(np.int32), skill=skill.astype(np.int32),
        born=zeros, name=[""] * n, served=np.stack([served.astype(np.int64), zeros], axis=1), right=zeros,
        lift=np.stack([first, np.zeros(n)], axis=1), squares=np.zeros(n), decisive=zeros, rest=0.0,
        ratings=np.zeros((n, 2), np.int64),
    )  # fmt: skip
    return lifts, exact


def _write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = skg_bench.run([*_RUN, f"out={folder}/run"], progress=False)
        table = Path(folder) / "skills.csv"
        show_worths(skill_worths(run.path, "skg", "all", partial(exact_lifts, trust=False)), table)
        rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    rows.sort(key=lambda row: (int(row["user"]), int(row["skill"])))
    lines = [
        ",".join(row[name] if name in COLUMNS[:3] else f"{float(row[name]):.4f}" for name in COLUMNS) for row in rows
    ]
    FILE.write_text("\n".join([",".join(COLUMNS), *lines, ""]), "utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.analysis.lift.known --write")
    _write()
