"""The package itself: its version, and places of its configuration and data.

They lie beside the package in a checkout, inside it in a wheel.
"""

from pathlib import Path

VERSION = "0.2.0"
PACKAGE = Path(__file__).resolve().parents[1]


def _find(name: str) -> Path:
    inside = PACKAGE / f"_{name}"
    return inside if inside.is_dir() else PACKAGE.parent / name


CONF = _find("conf")
DATA = _find("data")
EXPERIMENTS = _find("experiments")
_BOOK = ".v2.json"
CHECKOUT = DATA.parent


def experiment_module(name: str, folder: Path = EXPERIMENTS) -> str:
    """Package of an experiment, or of a bench, which stands one folder lower."""
    return f"experiments.bench.{name}" if (folder / "bench" / name).is_dir() else f"experiments.{name}"


def named_books() -> dict[str, Path]:
    """Files of the skillbooks that come with the package, by name."""
    return {file.name.removesuffix(_BOOK): file for file in sorted(DATA.glob(f"*/*{_BOOK}"))}
