"""`summary.json` and `curves.csv` of a run; `content` says what they hold, `describe` computes them."""

from skg_bench.analysis.summary.content import Summary
from skg_bench.analysis.summary.describe import csv, describe, read_summary, replace_text, write_summary

__all__ = ["Summary", "csv", "describe", "read_summary", "replace_text", "write_summary"]
