"""Logs and corpora of others: readers of recorded sessions and labelled messages."""
