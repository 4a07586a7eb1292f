"""Skillbooks as ACE writes them: documents of three published formats, and what the published engines do with them.

A run keeps its skills in the skillbook table; these documents stand at the edge. Each of the three formats has a reader
and a writer, and a mode that behaves as the package that published it (`compat-v1`, `compat-v09`, `compat-v2`:
half-applied batches and silent no-ops included). One strict algebra refuses what it does not know.
"""

from skg_bench.skillbook.ace.book import AceBook, CompatMode, Era, dumps, to_dict
from skg_bench.skillbook.ace.codec import from_dict, loads
from skg_bench.skillbook.ace.effective import effective
from skg_bench.skillbook.ace.engine import apply_as_published
from skg_bench.skillbook.ace.strict import strict

__all__ = (
    "AceBook", "CompatMode", "Era", "apply_as_published", "dumps", "effective", "from_dict", "loads", "strict",
    "to_dict",
)  # fmt: skip
