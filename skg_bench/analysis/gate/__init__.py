"""May this change land? A run held against a committed baseline: pass, fail, or inconclusive, and why.

`panel` is what one arm did on a fixed set of users, `baseline` the file that keeps it, `judge` the rule of the verdict,
`flips` the turns that explain it, `outputs` the ways of saying it.
"""
