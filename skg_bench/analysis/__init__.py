"""Tables, comparisons and the page, computed from the logs of a run.

Rooms import one way: statistics < counts < summary < comparison < gate and report, which do not know each other. A new
metric goes to `counts/metrics`, an interval to `statistics`, a tile to `report/heads`, what blocks to `gate/rules`.
"""
