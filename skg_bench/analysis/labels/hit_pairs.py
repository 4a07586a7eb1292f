"""Hits of the arms of a replayed log, by turn: pairs of message and answer, strata, and the order of judging.

A pair is that of one turn: its digest holds the user and the minute, as what is right for one user now need not be
right for another one, or next week. Arms that give the same answer at the same turn share the pair.

A turn has a permanent random number (Ohlsson 1995), the same under all arms and in all runs of a log. In each
stratum of an arm the turns with the smallest numbers are judged first, so that those judged so far are a simple
random sample of the stratum whatever other arms, runs or earlier draws were judged for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from skg_bench.analysis.counts.columns import column, seconds
from skg_bench.core.draws import Purpose, draw, fold, key
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64, U64, Bool
from skg_bench.runfolder.run import RunTables

STRATA = ("same text", "same intent", "other intent", "not known")
"""Facts that the log itself knows of a hit: its answer is the log's own text, another one given to the same intent,
one given to another intent, or nothing is known of it."""
SAME_TEXT = 0
_TURN = ("user", "event", "message", "logged_answer", "time", "logged_time", "logged_user", "asked_again")
_COLUMNS = (*_TURN[1:], "stored_answer", "same_answer", "same_intent")
_MINUTE = 60


@dataclass(frozen=True)
class ArmHits:
    """Hits of an arm, H of them, in the order in which they are judged."""

    arm: str
    turn: I64  # [H] row of the turn
    pair: U64  # [H] digest of the turn's question and the stored answer
    logged: U64  # [H] digest of the turn's question and the log's own answer
    stratum: I64  # [H] place in STRATA

    @property
    def sizes(self) -> I64:
        """Hits of each stratum `[4]`."""
        return np.bincount(self.stratum, minlength=len(STRATA))


@dataclass(frozen=True)
class HitPairs:
    """Turns of a log, N of them, with the hits of each arm."""

    table: pa.Table  # [N] rows of the log: user, event, message, logged_answer, times, logged_user
    question: (
        U64  # [N] digest of what a label depends on beside the answer: message, user and minute; of a task: message
    )
    order: F64  # [N] permanent random numbers
    arms: Sequence[ArmHits]
    stored: dict[str, pa.ChunkedArray]  # [N] text of the stored answer of each arm, null: no hit

    def arm(self, name: str) -> ArmHits:
        """Hits of an arm by name."""
        return next(hits for hits in self.arms if hits.arm == name)

    def texts(self, pair: int) -> tuple[str, str]:
        """Message and answer of a pair that could be judged."""
        for hits in self.arms:
            for digests, answers in ((hits.pair, self.stored[hits.arm]), (hits.logged, self.table["logged_answer"])):
                if len(rows := np.flatnonzero(digests == np.uint64(pair))):
                    turn = int(hits.turn[rows[0]])
                    return self.table["message"][turn].as_py(), answers[turn].as_py()
        raise KeyError(pair)

    def all_texts(self) -> dict[int, tuple[str, str]]:
        """Message and answer of all pairs that could be judged, by digest; none without words."""
        texts, logged = dict[int, tuple[str, str]](), self.table["logged_answer"]
        for hits in self.arms:
            for digests, answers in ((hits.pair, self.stored[hits.arm]), (hits.logged, logged)):
                distinct, first = np.unique(digests, return_index=True)
                at = pa.array(hits.turn[first])
                columns = (distinct.tolist(), self.table["message"].take(at).to_pylist(), answers.take(at).to_pylist())
                texts |= {
                    pair: (message, answer)
                    for pair, message, answer in zip(*columns, strict=True)
                    if answer is not None
                }
        return texts

    @property
    def pairs(self) -> U64:
        """Digests of all pairs that could be judged, sorted."""
        return np.unique(np.concatenate([*(hits.pair for hits in self.arms), *(hits.logged for hits in self.arms)]))


def hit_pairs(run: RunTables, arms: Sequence[str], seed: int = 0) -> HitPairs:
    """Hits of the arms, one at least, of a run that replays a log. `seed`: of the permanent random numbers.

    Raises UsageError for a run of simulated users, a log without answers, and one whose words are hashes.
    """
    log = run.manifest.get("log")
    if log is None:
        raise UsageError(
            f"{run.path} replays no log: its world knows which answers were right, so nobody need judge them"
        )
    if "answer" not in log["knows"]:
        raise UsageError(
            f"{run.path}: no column of {log['file']} was read as its answers, so there is nothing to judge; run it "
            "again with 'simulator.columns={answer: COLUMN}'"
        )
    if log["redacted"]:
        raise UsageError(
            f"{run.path}: its words are hashes, which nobody can judge; run it again with simulator.redact=false"
        )
    rows = {arm: run.turns(arm, _COLUMNS) for arm in arms}
    table = rows[arms[0]].select(_TURN)
    order, question = turn_numbers(table, seed), _questions(table)
    stored = {arm: turns["stored_answer"] for arm, turns in rows.items()}
    hits = [_arm_hits(arm, turns, order, question) for arm, turns in rows.items()]
    return HitPairs(table, question, order, hits, stored)


def pair_digest(question: U64, answer: str) -> int:
    """Digest, 64 bits, of a question `[1]` of `HitPairs` and an answer."""
    return int(fold(question, np.array([text_digest(answer)], np.uint64))[0])


def text_digest(text: str) -> int:
    """Digest of a text, 64 bits; line ends of all kinds are one."""
    same = text.replace("\r\n", "\n").replace("\r", "\n")
    return int.from_bytes(blake2b(same.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def text_digests(texts: pa.ChunkedArray) -> U64:
    """Digest of each text of a column without gaps."""
    encoded = texts.combine_chunks().dictionary_encode()
    code, used = np.unique(encoded.indices.to_numpy(), return_inverse=True)  # some of the words are of other turns
    words = encoded.dictionary.take(pa.array(code)).to_pylist()
    known: U64 = np.fromiter(map(text_digest, words), np.uint64, len(words))
    return known[used]


def turn_numbers(rows: pa.Table, seed: int) -> F64:
    """Permanent random number of each turn."""
    users = column(rows, "user").astype(np.int64)
    return draw(key(seed, users), column(rows, "event").astype(np.int64), Purpose.JUDGED)


def _questions(table: pa.Table) -> U64:
    minute = seconds(table, "logged_time") // _MINUTE
    return fold(fold(text_digests(table["message"]), text_digests(table["logged_user"])), minute)


def _arm_hits(arm: str, rows: pa.Table, order: F64, question: U64) -> ArmHits:
    hit: Bool = rows["stored_answer"].is_valid().to_numpy() & rows["logged_answer"].is_valid().to_numpy()
    turn = np.flatnonzero(hit)
    turn = turn[np.argsort(order[turn], kind="stable")]
    hits = rows.take(pa.array(turn))
    same, intent = (hits[name].cast(pa.int8()).fill_null(-1).to_numpy() for name in ("same_answer", "same_intent"))
    return ArmHits(
        arm, turn,
        pair=fold(question[turn], text_digests(hits["stored_answer"])),
        logged=fold(question[turn], text_digests(hits["logged_answer"])),
        stratum=np.where(same == 1, SAME_TEXT, np.array([2, 1, 3])[intent]),
    )  # fmt: skip
