"""Arms held against one another, within a run and across runs, and what that says of the claims.

`compare` is the paired comparison, `flips` the turns behind it, `contrasts` differences that an experiment names,
`assay` the rule for what a contrast may say, `claims` and `findings` the statements of the sources.
"""
