"""Worlds: users, their events, what is right, and how users react. One folder a domain, with a docstring of its own.

A world's ledger is `core.world.Ledger`; a reader of a new log format goes to `logs`. `chance`, `order`, `yaml_files`
and `datasets` (published data and their files) serve several domains.
"""
