"""Steps of `skillbook convert`: skillbooks of runs and files into other formats."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from skg_bench.app.progress import console
from skg_bench.app.skillbook import agentropy_folders, files
from skg_bench.app.skillbook.files import Named
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.skillbook import agent_skills
from skg_bench.skillbook.ace.book import ERAS, Era
from skg_bench.skillbook.conversion import ConvertedBook, between, to_ace

AGENTROPY, AGENT_SKILLS = "agentropy", "agent-skills"


def convert(
    path: Path, to: str | None, out: Path, arm: str | None, users: Sequence[int], *, trust: bool = False
) -> None:
    """Write the skillbook of a file, or those of a run, to `out` in the format `to`, and say what is lost.

    Raises UsageError, before anything is written, for an unknown format, for files that hold no skillbook, for users
    that a run does not have, and where `out` is there already.
    """
    to = to or (AGENTROPY if files.is_run(path) else "v2")
    if to not in (AGENTROPY, AGENT_SKILLS, *ERAS):
        raise UsageError(f"--to {to}; valid are {', '.join((AGENTROPY, AGENT_SKILLS, *ERAS))}")
    if files.is_run(path) and arm is None:
        raise UsageError(f"{path} is a run; name one of its arms with --arm")
    if arm is not None and to == AGENTROPY:
        agentropy_folders.convert_to_agentropy(path, arm, users, out, trust=trust)
        return
    files.check_free(out)
    if arm is not None and files.is_run(path):
        _of_run(path, to, out, arm, users)
    else:
        _of_file(path, to, out, arm, users)


def _of_file(path: Path, to: str, out: Path, arm: str | None, users: Sequence[int]) -> None:
    if to == AGENTROPY:
        raise UsageError(f"{path} is no run: --to {AGENTROPY} writes vectors and signals, which only runs have")
    named = Named(path, arm, users[0] if users else None)
    if named.is_document and to in ERAS:  # without a detour, which would lose more
        converted = between(files.read_ace_book(path), _era(to))
        files.write_ace_book(converted.book, out)
        _say(str(out), converted.losses)
        return
    _say(str(out), _written(named.read(), to, out, named.user))


def _of_run(path: Path, to: str, out: Path, arm: str, users: Sequence[int]) -> None:
    """All books are read, and then written into a folder that gets its name when it is whole."""
    everybody = users or range(int(Run(path).manifest["users"]))
    books = {user: Named(path, arm, user).read() for user in everybody}
    lost: Counter[str] = Counter()
    out.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
        whole = Path(folder) / "books"
        whole.mkdir(mode=0o700)
        for user, book in books.items():
            name = f"user-{user}" if to == AGENT_SKILLS else f"user-{user}.json"
            lost.update(_written(book, to, whole / name, user))
        whole.rename(out)
    _say(f"{out}: {len(books)} skillbooks of arm {arm}", lost)


def _written(read: ConvertedBook, to: str, out: Path, user: int | None) -> Mapping[str, int]:
    """Returns what is lost. `user`: whose it is, of a run."""
    if to == AGENT_SKILLS:
        return Counter(read.losses) + Counter(agent_skills.write_agent_skills(read.book, out, by_name=user is None))
    converted = to_ace(read.book, _era(to), files.MONDAY, user)
    files.write_ace_book(converted.book, out)
    return Counter(read.losses) + Counter(converted.losses)


def _say(written: str, losses: Mapping[str, int]) -> None:
    console().print(f"written: {written}", highlight=False, markup=False, soft_wrap=True)
    say_losses(losses)


def say_losses(losses: Mapping[str, int]) -> None:
    """Print what is lost."""
    kinds = ", ".join(f"{kind} ({n})" for kind, n in losses.items())
    words = f"lost: {kinds}; in brackets: of how many skills" if losses else "nothing is lost"
    console().print(words, highlight=False, markup=False)


def _era(to: str) -> Era:
    return next(era for era in ERAS if era == to)
