"""Estimates, intervals, tests and bands, as functions of plain arrays."""
