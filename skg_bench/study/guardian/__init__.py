"""Draws of the Guardian's world: its prior, the lives of a draw's users under each arm, and verdicts on their figures.

`study` makes `lives` in memory, `replays` gives them other books, `drawing` makes a table of draws on several
processes and the command of an experiment, `mass_verdicts` reads such tables.
"""
