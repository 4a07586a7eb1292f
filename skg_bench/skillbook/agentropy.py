"""A skill index as agentropy keeps it (SKG paper, sections 2.3, 2.4 and 4): `skills.jsonl`, `embeddings.fvecs`,
`signals.jsonl`.

A line of `skills.jsonl` has the paper's fields; a line of `signals.jsonl` those of its signal table, and `time` and
`answer`, without which nobody can replay it. `embeddings.fvecs` holds a vector for each example, skills in the order
of their lines: int32 d, then d float32, little-endian, each time (corpus-texmex.irisa.fr). What a skillbook has beyond
that stands under `skg_bench` in each line and, for archived skills and the version, in `skg_bench.json`; without it a
book is read as far as the paper's fields go. In place of `rerank-model.pkl`, which is never opened, since to unpickle
is to run what it says, `rerank-model.json` holds a fitted scorer (`pool/ARM.json`), where a run has kept one.
"""

import json
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import LONGEST_TEXT, bytes_of, json_file, json_of, lines_of, plain, refusing
from skg_bench.core.grid import F32
from skg_bench.core.shapes import shaped
from skg_bench.core.temporary import private, write_private
from skg_bench.skillbook.skillbook import Skill, Skillbook

SKILLS, VECTORS, SIGNALS, OURS, PICKLE, MODEL = (
    "skills.jsonl", "embeddings.fvecs", "signals.jsonl", "skg_bench.json", "rerank-model.pkl", "rerank-model.json",
)  # fmt: skip
AGENTROPY_FIELDS = ("name", "prompt", "examples", "embedding_count", "success_rate", "last_updated")
TABLE = (
    "user_msg_id", "message", "max_sim", "matched_skill", "skill_score", "fallback_to_llm", "user_satisfaction",
    "skill_learned",
)  # fmt: skip
_OWN = tuple(f.name for f in fields(Skill) if f.name not in ("name", "examples"))

_COUNT = 0, 2**31 - 1
_TURN = -1, 2**31 - 1
_TIME = -(2**35), 2**35  # seconds: about a thousand years before and after the first Monday
_BOUNDS = {
    **dict.fromkeys(("id", "uses", "ok", "partial", "miss", "weekend"), _COUNT), "hours": (0, 2**15 - 1),
    **dict.fromkeys(("source_turn", "after", "sources"), _TURN),
    **dict.fromkeys(("born", "last_used", "last_ok"), _TIME),
}  # fmt: skip

Line = dict[str, Any]


@dataclass(frozen=True)
class AgentropyIndex:
    """Content of such a folder."""

    book: Skillbook
    answers: tuple[tuple[str | None, ...], ...]  # of each skill's examples, None: not known
    vectors: F32  # [E, D] of the examples of active skills, in order
    signals: tuple[Line, ...]


def write_agentropy(folder: Path, index: AgentropyIndex, monday: datetime) -> None:
    """Write the folder. `monday`: when second 0 of the book is."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds messages
    lines = [_line(skill, answers, monday) for skill, answers in zip(index.book.skills, index.answers, strict=True)]
    active = [line for line, skill in zip(lines, index.book.skills, strict=True) if skill.active]
    archived = [line for line, skill in zip(lines, index.book.skills, strict=True) if not skill.active]
    _write_lines(folder / SKILLS, active)
    _write_lines(folder / SIGNALS, index.signals)
    write_fvecs(folder / VECTORS, index.vectors)
    ours = {"version": index.book.version, "hash": index.book.hash.hex(), "archived": archived}
    write_private(folder / OURS, json.dumps(ours, ensure_ascii=False) + "\n")


def read_agentropy(folder: Path, monday: datetime) -> AgentropyIndex:
    """Read it.

    Raises UsageError for a missing or torn file, fields that are not there, vectors of different lengths or another
    number of them than there are examples, and a book of another state hash than was written.
    """
    lines = list(_read_lines(folder / SKILLS, AGENTROPY_FIELDS))
    ours = _ours(folder / OURS)
    skills, answers = [], []
    for i, line in enumerate([*lines, *ours.archived]):
        skills.append(_skill(line, i, monday, folder))
        answers.append(tuple(example.get("answer") for example in line["examples"]))
    order = sorted(range(len(skills)), key=lambda i: skills[i].id)
    book = Skillbook(tuple(skills[i] for i in order), ours.version)
    if ours.hash is not None and book.hash.hex() != ours.hash:
        raise UsageError(f"{folder} holds another skillbook than {OURS} says ({ours.hash[:32]}); it was changed since")
    if [skills[i].id for i in order] != list(range(len(skills))):
        raise UsageError(f"{folder / SKILLS}: valid ids of {len(skills)} skills are 0 to {len(skills) - 1}, each once")
    vectors = read_fvecs(folder / VECTORS)
    examples = sum(len(line["examples"]) for line in lines)
    if len(vectors) != examples:
        raise UsageError(
            f"{folder / VECTORS} holds {len(vectors)} vectors for {examples} examples in {SKILLS}; make them again"
        )
    return AgentropyIndex(book, tuple(answers[i] for i in order), vectors, tuple(signals(folder)))


def signals(folder: Path) -> Iterator[Line]:
    """Lines of the signal table.

    Raises UsageError for a missing or torn file, and for lines without one of its fields.
    """
    yield from _read_lines(folder / SIGNALS, TABLE)


# -------------------------------------------------------------------------------------------------------- skills


def _line(skill: Skill, answers: Sequence[str | None], monday: datetime) -> Line:
    examples = [{"message": m, "answer": a} for m, a in zip(skill.examples, answers, strict=True)]
    updated = (monday + timedelta(seconds=skill.last_ok)).isoformat()
    return {
        "name": skill.name, "prompt": _prompt(skill), "examples": examples,
        "embedding_count": skill.embedding_count, "success_rate": skill.success_rate, "last_updated": updated,
        "skg_bench": {name: value for name, value in asdict(skill).items() if name in _OWN},
    }  # fmt: skip


def _prompt(skill: Skill) -> str:
    """Text that the skill is used with: its first example, what it says, or its name. Strategies have no examples."""
    if skill.examples or skill.content is None:
        return skill.examples[0] if skill.examples else skill.name
    return "\n\n".join(dict.fromkeys(filter(None, (skill.content.issue, skill.content.insight))))


def _skill(line: Line, i: int, monday: datetime, folder: Path) -> Skill:
    """A skill, from our own fields or, where there are none, from the paper's."""
    where = f"{folder / SKILLS}: skill {i + 1}"
    with refusing(where):
        _check_paper(line, where)
        examples = tuple(_text(example["message"], f"{where}: a message") for example in line["examples"])
        blank = Skill(
            i, _text(line["name"], f"{where}: name"), -1, examples, True, 0, 0, 0, 0, 0, 0, 0, (0,) * 8, 0, -1
        )
        if "skg_bench" in line:
            values = {name: line["skg_bench"][name] for name in _OWN}
            hours, sources = tuple(values["hours"]), tuple(values["sources"])
            skill = replace(
                blank, **{**values, "hours": hours, "sources": sources, "content": _content(values["content"])}
            )
            _check(skill, where)
            return skill
        date = str(line["last_updated"]) if line["last_updated"] is not None else monday.isoformat()
        when = round((datetime.fromisoformat(date).replace(tzinfo=None) - monday) / timedelta(seconds=1))
        return replace(blank, born=when, last_used=when, last_ok=when)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise UsageError(f"{where} is {reprlib.repr(value)}, valid is a text of at most {LONGEST_TEXT:,} characters")
    return value


def _check_paper(line: Line, where: str) -> None:
    """Raises UsageError for a prompt that says nothing, and for a success rate that is no share."""
    if not _text(line["prompt"], f"{where}: prompt").strip():
        raise UsageError(f"{where}: prompt is empty, valid is a text that says something")
    rate = line["success_rate"]
    if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1):
        raise UsageError(f"{where}: success_rate is {reprlib.repr(rate)}, valid is a share, 0 to 1, or null")


def _check(skill: Skill, where: str) -> None:
    """Raises UsageError for numbers that a skillbook has no place for."""
    for name, (least, most) in _BOUNDS.items():
        value = getattr(skill, name)
        for number in value if isinstance(value, tuple) else (value,):
            if type(number) is not int or not least <= number <= most:
                raise UsageError(
                    f"{where}: {name} is {reprlib.repr(number)}, valid is a whole number, {least} to {most}"
                )
    if len(skill.hours) != 8 or not isinstance(skill.active, bool):
        raise UsageError(f"{where}: hours are 8 numbers and active is true or false")


def _content(values: Line | None) -> Content | None:
    return None if values is None else Content(**{**values, "keywords": tuple(values["keywords"])})


@dataclass(frozen=True)
class _Ours:
    """Content of `skg_bench.json`."""

    version: int = 0
    hash: str | None = None
    archived: Sequence[Any] = ()


def _ours(file: Path) -> _Ours:
    if not file.is_file():
        return _Ours()
    content = json_file(file)
    try:
        ours: _Ours = shaped(_Ours, {**asdict(_Ours()), "archived": [], **content}, OURS)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{file} is not of its form: {error}") from error
    return ours


# -------------------------------------------------------------------------------------------------------- files


def _write_lines(file: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    write_private(file, "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines))


def _read_lines(file: Path, wanted: Sequence[str]) -> Iterator[Line]:
    if not file.is_file():
        raise UsageError(f"{file} is missing; an agentropy folder has {SKILLS}, {VECTORS} and {SIGNALS}")
    for number, raw in lines_of(file):
        where = f"{file}, line {number},"
        if raw is None:
            raise UsageError(f"{where} is too long for a line")
        if not raw.strip():
            continue
        read = plain(json_of(raw, where), where)
        if not isinstance(read, dict) or (missing := [name for name in wanted if name not in read]):
            lacks = ", ".join(missing) if isinstance(read, dict) else "an object"
            raise UsageError(f"{where} lacks {lacks}")
        yield read


def write_fvecs(file: Path, vectors: F32) -> None:
    """`[E, D]` float32, each behind its length."""
    n, width = vectors.shape
    raw = np.empty((n, 1 + width), "<f4")
    raw[:, :1] = np.full((n, 1), width, "<i4").view("<f4")
    raw[:, 1:] = vectors
    with open(file, "wb", opener=private) as written:
        written.write(raw.tobytes())


def read_fvecs(file: Path) -> F32:
    """`[E, D]` float32; `[0, 0]` of an empty file.

    Raises UsageError for a missing or torn file, and for vectors of different lengths.
    """
    if not file.is_file():
        raise UsageError(f"{file} is missing; an agentropy folder has {SKILLS}, {VECTORS} and {SIGNALS}")
    content = bytes_of(file)
    raw = np.frombuffer(content[: len(content) // 4 * 4], "<i4")
    if not content:
        return np.zeros((0, 0), np.float32)
    width = int(raw[0]) if len(raw) else 0
    if width <= 0 or len(content) % (4 * (1 + width)) or (raw.reshape(-1, 1 + width)[:, 0] != width).any():
        raise UsageError(f"{file} is torn, or its vectors are not all of {width} numbers, as the first one is")
    vectors: F32 = raw.reshape(-1, 1 + width)[:, 1:].view("<f4").astype(np.float32)
    if not np.isfinite(vectors).all():
        raise UsageError(f"{file} holds what is no number: vectors are made of finite ones")
    return vectors
