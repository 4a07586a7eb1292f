"""What `skillbook convert` does: skillbooks of runs and files into other formats."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from skg_bench.app.progress import console
from skg_bench.app.skillbook import agent_skills, agentropy, files
from skg_bench.app.skillbook.shown import recorded_losses
from skg_bench.core.ace.book import ERAS, Era
from skg_bench.core.conversion import ConvertedBook, between, to_ace
from skg_bench.core.errors import UsageError
from skg_bench.core.run import Run

AGENTROPY, AGENT_SKILLS = "agentropy", "agent-skills"


def convert(
    path: Path, to: str, out: Path, arm: str | None, users: Sequence[int], *, trust_remote_code: bool = False
) -> None:
    """Write the skillbook of a file, or those of a run, to `out` in the format `to`, and say what is lost.

    Raises UsageError for an unknown format, for files that hold no skillbook, and where `out` is there already.
    """
    if to not in (AGENTROPY, AGENT_SKILLS, *ERAS):
        raise UsageError(f"--to {to}; valid are {', '.join((AGENTROPY, AGENT_SKILLS, *ERAS))}")
    if files.is_run(path) and arm is None:
        raise UsageError(f"{path} is a run; name one of its arms with --arm")
    if to == AGENTROPY:
        if arm is None or not files.is_run(path):
            raise UsageError(f"{path} is no run: --to {AGENTROPY} writes vectors and signals, which only runs have")
        agentropy.convert(path, arm, users, out, trust_remote_code=trust_remote_code)
        return
    screen = console()
    lost: Counter[str] = Counter()
    if not files.is_run(path):
        if users:
            raise UsageError(f"--user {users[0]}: {path} is no run, and holds one skillbook; leave it out")
        lost.update(_file(path, to, out))
        written = str(out)
    else:
        everybody = users or range(int(Run(path).manifest["users"]))
        for user in everybody:
            lost.update(_book(files.read(path, arm, user), to, out / _named(user, to)))
        written = f"{len(everybody)} skillbooks of arm {arm}: {out / _named(None, to)}"
    screen.print(f"written: {written}", highlight=False, soft_wrap=True)
    screen.print(recorded_losses(lost), highlight=False, markup=False)


def _named(user: int | None, to: str) -> str:
    name = "user-*" if user is None else f"user-{user}"
    return name if to == AGENT_SKILLS else f"{name}.json"


def _file(path: Path, to: str, out: Path) -> Mapping[str, int]:
    """Between two formats of ACE a document is converted without a detour, which would lose more."""
    if path.is_file() and to in ERAS:
        converted = between(files.document(path), _era(to))
        files.write(converted.book, out)
        return converted.losses
    return _book(files.read(path, None, None), to, out)


def _book(read: ConvertedBook, to: str, out: Path) -> Mapping[str, int]:
    if to == AGENT_SKILLS:
        return Counter(read.losses) + Counter(agent_skills.write(read.book, out))
    converted = to_ace(read.book, _era(to), files.MONDAY)
    files.write(converted.book, out)
    return Counter(read.losses) + Counter(converted.losses)


def _era(to: str) -> Era:
    return next(era for era in ERAS if era == to)
