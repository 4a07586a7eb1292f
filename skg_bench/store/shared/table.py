"""The one table of a store in a database."""

from collections.abc import Mapping

from skg_bench.core.store import StoreError

SKILLBOOK_TABLE = "skg_skillbooks"


def check_columns(place: str, columns: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Raises StoreError for a table of that name which is somebody else's, or of another version."""
    if dict(columns) != dict(wanted):
        given = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        valid = ", ".join(f"{name} {kind}" for name, kind in wanted.items())
        raise StoreError(
            f"{place} has a table {SKILLBOOK_TABLE} with the columns {given}; a store needs {valid}: nothing is "
            "stored, take another database"
        )
