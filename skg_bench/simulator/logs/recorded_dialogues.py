"""Dialogues without persons: Schema-Guided Dialogue (Rastogi et al., AAAI 2020) and USS (Sun et al., SIGIR 2021).

They have no users and no times. Dialogues go to pseudo-users by key, a dialogue a day from the first Monday on, a
minute between its turns, so that a book can be carried from one to the next; what looks like growth here is none.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import FAULTS, json_of, text_of
from skg_bench.simulator.logs.recorded_rows import LeftOut, RecordedTurn, user_name

ASSUMES = {
    "users": "dialogues go to pseudo-users by key: no persons, so nothing here is somebody's growth or habit",
    "time": "invented: a dialogue a day, from nine o'clock, a minute between turns; hours and gaps say nothing",
}
_FIRST = datetime(2018, 1, 1, 9)  # a Monday
_MINUTE = 60
_SCORES = tuple("12345")
_NUMBERED = re.compile(r"_\d+$")  # SGD has several services of a kind, MultiWOZ one
_NONE = "NONE"  # how SGD says that no intent of a service is active
_CLOSING, _CLOSING_ACTS = "closing", {"GOODBYE", "REQ_MORE"}

Dialogue = tuple[str, list[RecordedTurn]]  # its key, its turns


def sgd(path: Path, per_user: int, out: LeftOut) -> list[RecordedTurn]:
    """Turns of `dialogues_*.json` in a folder, or of one such file. The intent of a turn is the active one, under its
    service. Where several are active, as when a user leaves a service for another, it is that of the frame which
    changed most since the user's turn before, and the others are the turn's `also`. Turns that are answered with
    nothing but a goodbye or "anything else?" have the intent `closing`, whatever is active: such answers do for one
    another.

    Raises UsageError.
    """
    files = sorted(path.glob("dialogues_*.json")) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"simulator.path={path} has no dialogues_*.json; name a split's folder, such as .../sgd/dev")
    return as_pseudo_users([dialogue for file in files for dialogue in _sgd(file, out)], per_user)


def _sgd(file: Path, out: LeftOut) -> Iterator[Dialogue]:
    dialogues = json_of(text_of(file), file)
    for position, dialogue in enumerate(dialogues if isinstance(dialogues, list) else [None], 1):
        yield from published(dialogue, position, file.name, out)


def published(dialogue: Any, position: int, source: str, out: LeftOut) -> Iterator[Dialogue]:
    """A dialogue in SGD's form; what is none is counted."""
    try:
        key, turns = str(dialogue["dialogue_id"]), _sgd_turns(dialogue, position)
    except FAULTS:
        out.add(f"no dialogue of the published form in {source}", position)
        return
    if turns:
        yield key, turns
    else:
        out.add(f"no line of a user in the dialogue in {source}", position)


def _sgd_turns(dialogue: Any, position: int) -> list[RecordedTurn]:
    turns, rows = dialogue["turns"], list[RecordedTurn]()
    before: Mapping[str, Any] = {}
    for i, turn in enumerate(turns):
        if turn["speaker"] == "USER":
            frames = {frame["service"]: frame for frame in turn["frames"]}
            reply = turns[i + 1] if i + 1 < len(turns) and turns[i + 1]["speaker"] == "SYSTEM" else None
            intents = [_CLOSING] if reply is not None and _closing(reply) else _active(frames, before)
            rows.append(
                RecordedTurn(
                    position, None, None, turn["utterance"], f"{dialogue['dialogue_id']}#{i}",
                    intents[0] if intents else None, None if reply is None else reply["utterance"], also=intents[1:],
                    session=dialogue["dialogue_id"],
                )
            )  # fmt: skip
            before = frames
    return rows


def _active(frames: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """Active intents of a turn by service, first that of the frame which changed most. `before`: frames of the user's
    turn before.
    """
    active = [service for service, frame in frames.items() if _intent(frame) != _NONE]
    active.sort(key=lambda service: _change(frames[service], before.get(service)), reverse=True)  # stable
    return [f"{_NUMBERED.sub('', service)}.{_intent(frames[service])}" for service in active]


def _change(frame: Any, before: Any) -> tuple[bool, ...]:
    """Novelty of a frame, the larger the more. That an offer of a service is accepted often comes with the first
    request to another: a new service outweighs it.
    """
    acts = bool(frame.get("actions"))
    if before is None:
        return True, True, True, acts
    state, old = frame["state"], before.get("state") or {}
    question = set(state.get("requested_slots", ())) - set(old.get("requested_slots", ()))
    value = state.get("slot_values") != old.get("slot_values")
    return False, _intent(frame) != _intent(before), bool(question or value), acts


def _intent(frame: Any) -> str:
    return str((frame.get("state") or {}).get("active_intent", _NONE))


def _closing(reply: Any) -> bool:
    acts = {action["act"] for frame in reply.get("frames", ()) for action in frame.get("actions", ())}
    return bool(acts) and acts <= _CLOSING_ACTS


def uss(path: Path, per_user: int, out: LeftOut) -> list[RecordedTurn]:
    """Turns of a USS file: `speaker<TAB>text<TAB>act<TAB>scores` a line, an empty line between dialogues.

    Annotators say from 1 to 5 how satisfied a user is at each line of theirs. We read that as what they think of the
    answer before it, as there is nothing else yet to be satisfied with: an answer's rating is the mean score, rounded,
    of the user's next line, and known then. The score of a whole dialogue belongs to no turn.
    """
    dialogues: list[Dialogue] = []
    block: list[tuple[int, list[str]]] = []
    for position, line in enumerate([*text_of(path).splitlines(), ""], 1):
        cells = line.split("\t")
        if not line.strip():
            if block:
                name = f"{path.name}:{block[0][0]}"
                dialogues.append((name, [replace(row, session=name) for row in _uss(block)]))
            block = []
        elif len(cells) >= 3 and cells[0] in ("USER", "SYSTEM"):
            if cells[1] != "OVERALL":
                block.append((position, cells))
        else:
            out.add("no line of the published form", position)
    return as_pseudo_users(dialogues, per_user)


def _uss(block: Sequence[tuple[int, list[str]]]) -> list[RecordedTurn]:
    rows: list[RecordedTurn] = []
    for i, (position, (speaker, text, _, *scores)) in enumerate(block):
        if speaker == "USER":
            if rows and rows[-1].answer is not None:
                rows[-1].satisfaction, rows[-1].delay = _mean(scores), _MINUTE
            answer = block[i + 1][1][1] if i + 1 < len(block) and block[i + 1][1][0] == "SYSTEM" else None
            rows.append(RecordedTurn(position, None, None, text, answer=answer))
    return rows


def _mean(scores: Sequence[str]) -> int | None:
    given = [int(score) for score in ",".join(scores).split(",") if score.strip() in _SCORES]
    return int(sum(given) / len(given) + 0.5) if given else None


def invented(rows: Sequence[RecordedTurn], per_user: int) -> list[RecordedTurn]:
    """The turns of a table that has no users, or no times: each row is a dialogue."""
    dialogues = [(f"row {position}", list(turns)) for position, turns in groupby(rows, lambda row: row.position)]
    return as_pseudo_users(dialogues, per_user, users=all(row.user is None for row in rows))


def as_pseudo_users(dialogues: Sequence[Dialogue], per_user: int, users: bool = True) -> list[RecordedTurn]:
    """The dialogues' turns as those of pseudo-users, about `per_user` dialogues each, or (`users` False) of the users
    whom they name; where they have no times, a dialogue a day.
    """
    n_users = max(1, round(len(dialogues) / per_user))
    days, rows = Counter[Any](), list[RecordedTurn]()
    for name, turns in sorted(dialogues, key=lambda dialogue: _hash(dialogue[0])) if users else dialogues:
        user = f"pseudo-user {_hash(f'user of {name}') % n_users}" if users else user_name(turns[0].user)
        begin = _FIRST + timedelta(days=days[user])
        days[user] += 1
        for i, row in enumerate(turns):
            row.user = user
            row.time = begin + timedelta(seconds=_MINUTE * i) if row.time is None else row.time
            rows.append(row)
    return rows


def _hash(name: str) -> int:
    """Hash of any key, that of a row that will be left out too."""
    return int.from_bytes(blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest(), "big")
