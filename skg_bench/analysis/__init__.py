"""Tables, comparisons and the page, computed from the logs of a run.

Rooms import one way: statistics < counts < summary < comparison < gate and report, which do not know each other.
"""
