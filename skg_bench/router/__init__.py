"""Routers, one module each: message and skillbook to a shortlist."""
