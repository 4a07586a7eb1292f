"""Steps of `skillbook convert`: skillbooks of runs and files into other formats."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from skg_bench.app.progress import console
from skg_bench.app.skillbook import agentropy_folders, files
from skg_bench.app.skillbook.files import Named
from skg_bench.app.skillbook.rebuilt import check_readable_skills, everybody
from skg_bench.core.errors import UsageError
from skg_bench.core.text import plural
from skg_bench.runfolder.run import Run
from skg_bench.skillbook import agent_skills
from skg_bench.skillbook.ace.book import ERAS, AceBook, Era
from skg_bench.skillbook.agentropy import SKILLS
from skg_bench.skillbook.conversion import NO_LOSS, ConvertedBook, brought_into, to_document

AGENTROPY, AGENT_SKILLS = "agentropy", "agent-skills"


def convert(
    path: Path, to: str | None, out: Path, arm: str | None, users: Sequence[int], *, trust: bool = False
) -> None:
    """Write the skillbook of a file, or those of a run, to `out` in the format `to`, and say what is lost.

    Raises UsageError, before anything is written, for an unknown format, for files that hold no skillbook, for users
    that a run does not have, for a redacted log, and where `out` is there already.
    """
    to = to or (AGENTROPY if files.is_run(path) else "v2")
    if to not in (AGENTROPY, AGENT_SKILLS, *ERAS):
        raise UsageError(f"--to {to}; valid are {', '.join((AGENTROPY, AGENT_SKILLS, *ERAS))}")
    if files.is_run(path) and arm is None:
        raise UsageError(f"{path} is a run; name one of its arms with --arm")
    if arm is not None and to == AGENTROPY:
        say_losses(agentropy_folders.convert_to_agentropy(path, arm, users, out, trust=trust))
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
    if to == AGENT_SKILLS and path.is_dir() and not (path / SKILLS).is_file() and not named.is_run:
        folders = agent_skills.read_folders(path, files.now())
        with _new_folder(out) as whole:
            agent_skills.copy_folders(folders, whole)
        _say(f"{out}: {plural(len(folders.skills), 'skill')}, byte for byte", folders.without)
        return
    document = named.document()
    if document is None:
        _say(str(out), _written(named.read(), to, out, named.user))
        return
    _say(str(out), Counter(document.losses) + Counter(_written_document(document.book, to, out)))


def _of_run(path: Path, to: str, out: Path, arm: str, users: Sequence[int]) -> None:
    """All books are read, and then written into a folder that gets its name when it is whole."""
    run = Run(path)
    check_readable_skills(run)
    chosen = users or everybody(run, arm)
    books = {user: Named(path, arm, user).read() for user in chosen}
    lost: Counter[str] = Counter()
    with _new_folder(out) as whole:
        whole.mkdir(mode=0o700)
        for user, book in books.items():
            name = f"user-{user}" if to == AGENT_SKILLS else f"user-{user}.json"
            lost.update(_written(book, to, whole / name, user))
    _say(f"{out}: {plural(len(books), 'skillbook')} of arm {arm}", lost)


def _written(read: ConvertedBook, to: str, out: Path, user: int | None) -> Mapping[str, int]:
    """Returns what is lost. `user`: whose it is, of a run."""
    document = to_document(read.book, files.MONDAY, user)
    return Counter(read.losses) + Counter(document.losses) + Counter(_written_document(document.book, to, out))


def _written_document(book: AceBook, to: str, out: Path) -> Mapping[str, int]:
    if to == AGENT_SKILLS:
        with _new_folder(out) as whole:
            agent_skills.write_agent_skills(book, whole)
        return NO_LOSS
    converted = brought_into(book, _era(to))
    files.write_ace_book(converted.book, out)
    return converted.losses


@contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """Place for a folder that becomes `out` when it is whole."""
    out.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as above:
        yield Path(above) / "whole"
        (Path(above) / "whole").rename(out)


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
