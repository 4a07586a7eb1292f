"""Shortlist and scores to a skill or the fallback."""
