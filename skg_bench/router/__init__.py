"""Routers, one module each: message and skillbook to a shortlist.

Functions that several routers use are in `core/shortlist.py` and `core/neighbourhood.py`: curators
read them too. `shared` is about one skillbook that many users share.
"""
