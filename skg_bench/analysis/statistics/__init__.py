"""Estimates, intervals, tests and bands, as functions of plain arrays: no run, no arm and no metric is known here."""
