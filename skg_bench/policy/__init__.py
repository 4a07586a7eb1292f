"""Policies, one module each: shortlist and scores to a skill or the fallback.

Functions that several policies use are in `shared`.
"""
