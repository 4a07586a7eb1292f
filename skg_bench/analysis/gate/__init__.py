"""May this change land? A run held against a committed baseline: pass, fail, or inconclusive, and why.

`panel` is what one arm did on a fixed set of users, `panel_world` what of it is not the system's, `baseline` the file
that keeps it, `rules` what may block, `against` what is compared, `tail` harm to few, `judge` the rule of the verdict,
`verdict_turns` the turns that explain it, `outputs` the ways of saying it.
"""
