"""`summary.json` and `curves.csv` of a run; `describe` says what they hold."""

from skg_bench.analysis.summary.describe import LAMBDAS, csv, describe, read, replace_text, write

__all__ = ["LAMBDAS", "csv", "describe", "read", "replace_text", "write"]
