"""Curators, one module each: observations to updates of the skillbook."""
