"""Folders to begin with: an ablation, an assistant, a log, a gate. Each works as it stands."""

import shutil
import tempfile
from pathlib import Path

from skg_bench.app.progress import console
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.foreign import text_of
from skg_bench.core.package import DATA

STARTERS = DATA / "templates"


def template_names() -> list[str]:
    """Names of all templates, sorted."""
    return sorted(folder.name for folder in STARTERS.iterdir() if folder.is_dir())


def init_folder(kind: str, folder: Path) -> None:
    """Copy the template `kind` to `folder`, which must be new or empty, and print what is in it, and its commands. A
    folder is whole or absent.

    Raises UsageError for an unknown template, and for a place that is taken; OSError.
    """
    if kind not in (known := template_names()):
        raise UsageError(f"there is no template {kind!r}; {nearest(kind, known)}")
    taken = folder.is_symlink() or folder.exists()
    if taken and (folder.is_symlink() or not folder.is_dir() or any(folder.iterdir()) or folder.samefile(".")):
        raise UsageError(f"{folder} is there, and is no empty folder below this one; give the name of a new folder")
    try:
        names = _copied(STARTERS / kind, folder)
    except OSError as error:  # it names a place that is gone by now
        error.filename = str(folder)
        raise
    screen = console()
    screen.print(f"{folder}: {', '.join(names)}", soft_wrap=True)
    screen.print("next:")
    for line in (f"cd {folder}", *_commands(text_of(folder / "README.md"))):
        screen.print(f"  {line}", soft_wrap=True)


def _copied(template: Path, folder: Path) -> list[str]:
    """Files of a template, which lie in `folder` from now on."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".init-", dir=folder.parent) as scratch:
        for name in (names := _files(template)):
            (Path(scratch) / "made" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(template / name, Path(scratch) / "made" / name)
        (Path(scratch) / "made").replace(folder)
    return names


def _files(template: Path) -> list[str]:
    """Files of a template, without compiled ones."""
    files = (file.relative_to(template) for file in template.rglob("*") if file.is_file())
    return sorted(str(file) for file in files if "__pycache__" not in file.parts)


def _commands(page: str) -> list[str]:
    """Lines of the first block of commands of a page."""
    return page.split("```sh\n", 1)[1].split("\n```", 1)[0].splitlines()
