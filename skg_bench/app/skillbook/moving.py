"""Steps of `skillbook push` and `skillbook pull`: skillbooks of a run into a store, and those of a store into files."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from skg_bench.app.progress import console
from skg_bench.app.skillbook import files
from skg_bench.app.skillbook.converting import say_losses
from skg_bench.app.skillbook.files import Named
from skg_bench.app.skillbook.rebuilt import check_readable_skills, everybody
from skg_bench.app.stored import StoredBooks, at_address
from skg_bench.core.errors import UsageError
from skg_bench.core.store import StoreError
from skg_bench.core.text import plural
from skg_bench.runfolder.deliveries import STORE, NotedDelivery, note_delivery
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.ace.book import AceBook
from skg_bench.skillbook.conversion import to_ace
from skg_bench.skillbook.storing import book_text, load, with_key
from skg_bench.tracker.address import noted_address

_LONGEST = 255  # bytes of a file's name


def push(path: Path, address: str, arm: str, users: Sequence[int]) -> None:
    """Store the skillbooks that `users` of a run, or all, have at the end, as user-U; what is there already stays. A
    run of a log notes where they went.

    Raises UsageError for an unknown arm or user, for a redacted log and where another skillbook stands under such a
    name, and StoreError.
    """
    if not files.is_run(path):
        raise UsageError(f"{path} is no run; push takes a run directory")
    run, screen = Run(path), console()
    check_readable_skills(run)
    chosen = users or everybody(run, arm)
    books = {user: to_ace(Named(path, arm, user).read().book, "v2", files.MONDAY, user) for user in chosen}
    if run.manifest.get("log"):  # of persons, whom forget has to find again
        named = noted_address(address) if "://" in address else str(Path(address).absolute())
        note_delivery(path, NotedDelivery(STORE, named))
    with at_address(address) as stored:
        new = 0
        for user, converted in books.items():
            key = f"{run.manifest['identity']}/{arm}/{user}"
            try:
                new += _pushed(stored, f"user-{user}", converted.book, key)
            except StoreError as error:
                rest = f"the rest from user {user} on is kept in {path}: push again"
                raise StoreError(f"{error}; stored are {new} new skillbooks, {rest}") from error
            except UsageError as error:
                raise UsageError(f"{error}; stored are {new} new skillbooks") from error
    count = plural(new, "skillbook")
    screen.print(f"{count} of arm {arm} stored in {address}", highlight=False, markup=False, soft_wrap=True)
    if len(books) > new:
        before = len(books) - new
        screen.print(f"{before} {'was' if before == 1 else 'were'} stored there before", highlight=False)
    say_losses(sum((Counter(converted.losses) for converted in books.values()), Counter()))


def pull(folder: Path, address: str, users: Sequence[str]) -> None:
    """Write the skillbooks of `users`, or of all, into a new folder: USER.json each.

    Raises UsageError where the folder is there already, for a user without a skillbook and for a document that is none,
    and StoreError.
    """
    files.check_free(folder)
    if "://" not in address and not Path(address).is_file():
        raise UsageError(f"{address} is no file; name a file that `skillbook push` has made, or postgresql://...")
    with at_address(address) as stored:
        books = {user: _pulled(stored, user, address) for user in (users or stored.users())}
    if not books:
        raise UsageError(f"{address} holds no skillbooks; nothing is written")
    names = {user: f"{quote(user, safe=' @+')}.json" for user in books}
    if long := [user for user, name in names.items() if len(name) > _LONGEST]:
        raise UsageError(
            f"the name of user {long[0]!r:.60} is too long for a file, and nothing is written; name the others with "
            "--user"
        )
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as above:
        whole = Path(above) / "books"
        whole.mkdir(mode=0o700)
        for user, book in books.items():
            files.write_ace_book(book, whole / names[user], strictly=False)  # it was read strictly
        whole.rename(folder)
    line = f"written: {folder}, {plural(len(books), 'skillbook')}"
    console().print(line, highlight=False, markup=False, soft_wrap=True)


def _pushed(stored: StoredBooks, user: str, book: AceBook, key: str) -> bool:
    """Was it stored now? Its key tells that it was before, whatever was learned since."""
    if stored.store.swap(user, 0, book_text(with_key(book, key)), key):
        return True
    kept = load(stored.store, user, files.now())
    if kept is None or key not in kept.book.batches:
        raise UsageError(f"the store has another skillbook of {user}, which stays; push into another store")
    return False


def _pulled(stored: StoredBooks, user: str, address: str) -> AceBook:
    kept = stored.load(user)
    if kept is None:
        raise UsageError(f"{address} has no skillbook of {user!r}; it has {len(stored.users())} of other users")
    return kept.book
