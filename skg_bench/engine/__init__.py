"""The turn and the run; no component, metric or command is known here.

`step` is the turn, `cohort` steps users through it, `execute` spreads cohorts over processes, `logbook` fills the logs,
`pending` keeps feedback until it is known, `checkpoint` goes on after an interruption. README.md says who holds what.
"""
