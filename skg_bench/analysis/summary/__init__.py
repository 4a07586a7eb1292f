"""`summary.json` and `curves.csv` of a run; `document` says what they hold, `describe` computes them."""

from skg_bench.analysis.summary.describe import csv, describe, read_summary, replace_text, write_summary
from skg_bench.analysis.summary.document import Summary

__all__ = ["Summary", "csv", "describe", "read_summary", "replace_text", "write_summary"]
