"""Observations to updates of the skillbook."""
