"""The world of 120 intents played as a log: its answers become texts, so that the truth of every pair is known."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np

import skg_bench
from skg_bench.analysis.labels.hit_pairs import ArmHits, HitPairs
from skg_bench.analysis.labels.label_shares import PairLabel
from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.grid import I64
from tests.runs import logs_alone

WORDINGS = 3  # texts of a right answer
ARMS = """arms={all: [curator=everything, policy.threshold=0.5], near: [curator=everything, policy.threshold=0.75],
 never: [policy=never, curator=none]}""".replace("\n", "")
COLUMNS = f"simulator.columns={{{', '.join(f'{name}: {name}' for name in ('intent', 'answer', 'cost_usd'))}}}"


def write_log(folder: Path, users: int = 12, weeks: int = 6) -> Path:
    """A CSV file of what users asked the model, with intents, answers and prices."""
    arm = ("arms={never: [policy=never, curator=none]}", "reference=never", "simulator.corpus=builtin_120")
    with logs_alone():
        world = skg_bench.run([f"users={users}", f"weeks={weeks}", *arm, f"out={folder / 'world'}"], progress=False)
    columns = ["message", "time", "event", "intent", "request_type", "answer_correct"]
    rows = world.turns("never", columns).to_pylist()
    with (folder / "log.csv").open("w", newline="") as file:
        sheet = csv.writer(file)
        sheet.writerow(("user", "time", "message", "intent", "answer", "cost_usd"))
        for row in rows:
            asked = row["request_type"] or f"one-off {row['message']}"
            right = f"{asked}; right, wording {row['event'] % WORDINGS}"
            answer = right if row["answer_correct"] else f"{asked}; wrong, {row['event'] % WORDINGS}"
            cells = (f"user {row['user']}", row["time"].isoformat(sep=" "), row["message"], row["intent"] or "", answer)
            sheet.writerow((*cells, "0.01"))
    return folder / "log.csv"


def play_log(folder: Path, users: int = 12, weeks: int = 6) -> None:
    """Write the log, and replay it under three arms."""
    folder.mkdir(parents=True, exist_ok=True)
    skg_bench.run(
        [
            "simulator=recorded",
            f"simulator.path={write_log(folder, users, weeks)}",
            COLUMNS,
            ARMS,
            "reference=never",
            f"out={folder / 'run'}",
        ],
        progress=False,
    )


def truth(pairs: HitPairs) -> list[tuple[I64, I64]]:
    """The right label of each arm's stored answers, and of the log's own."""
    messages, answers = (pairs.table[name].to_pylist() for name in ("message", "logged_answer"))
    asked = dict[str, str]()
    for message, answer in zip(messages, answers, strict=True):
        asked.setdefault(message, answer.split(";")[0])
    labels = []
    for hits in pairs.arms:
        stored = pairs.stored[hits.arm].to_pylist()
        columns = ([stored[i] for i in hits.turn], [answers[i] for i in hits.turn])
        labels.append(tuple(
            np.array([
                PairLabel.RIGHT if answer.startswith(f"{asked[messages[i]]}; right") else PairLabel.WRONG
                for i, answer in zip(hits.turn, column, strict=True)
            ], np.int64) for column in columns
        ))  # fmt: skip
    return [(stored, logged) for stored, logged in labels]


def judged_turns(pairs: HitPairs, right: list[tuple[I64, I64]], turns: list[int]) -> list[tuple[I64, I64]]:
    """Labels by arm where people judged all answers to these turns, and with them every pair that occurs again."""
    covered = set[int]()
    for hits in pairs.arms:
        at = np.isin(hits.turn, turns)
        covered.update(hits.pair[at].tolist(), hits.logged[at].tolist())
    known = np.array(sorted(covered), np.uint64)
    return [
        (
            np.where(np.isin(hits.pair, known), stored, PairLabel.UNJUDGED),
            np.where(np.isin(hits.logged, known), logged, PairLabel.UNJUDGED),
        )
        for hits, (stored, logged) in zip(pairs.arms, right, strict=True)
    ]


def drawn_again(pairs: HitPairs, right: list[tuple[I64, I64]], seed: int) -> tuple[HitPairs, list[tuple[I64, I64]]]:
    """The same hits under other random numbers, with their labels: what `hit_pairs(run, arms, seed)` reads."""
    users, events = (pairs.table[name].to_numpy().astype(np.int64) for name in ("user", "event"))
    order = draw(key(seed, users), events, Purpose.JUDGED)
    arms, labels = list[ArmHits](), list[tuple[I64, I64]]()
    for hits, (stored, logged) in zip(pairs.arms, right, strict=True):
        at = np.argsort(order[hits.turn], kind="stable")
        arms.append(ArmHits(hits.arm, hits.turn[at], hits.pair[at], hits.logged[at], hits.stratum[at]))
        labels.append((stored[at], logged[at]))
    return replace(pairs, order=order, arms=arms), labels
