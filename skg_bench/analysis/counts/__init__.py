"""The logs of a run as counts by user, request and week, and the metrics that are made of them.

`tally` counts, `metrics` declares each metric as a ratio of two counts, `measure` estimates it and its differences.
"""
