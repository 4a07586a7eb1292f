"""Policies, one module each: shortlist and scores to a skill or the fallback."""
