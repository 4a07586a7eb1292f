"""Logs and corpora of others: readers of recorded sessions and labelled messages.

`recorded` is the world of a replayed log, `recorded_*` are its formats and columns; `labelled`, `clinc150` are corpora.
"""
