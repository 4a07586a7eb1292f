"""Routers, one module each: message and skillbook to a shortlist.

Functions that several routers use are in `shared`, and in `core/shortlist.py` where curators read them too.
"""
