"""Values of policies that were not run, from a log that states the chance of each of its decisions.

The estimand is called step: other decisions in the states that the log reached. What an arm would have learned from
them, and how its states would then differ, is no part of it.
"""
