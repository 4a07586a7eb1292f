"""Studies over a prior: what is not known of a world is drawn again and again, and a claim gets its verdict by mass.

`prior` reads a prior and draws from it, `kept_draws` keeps draws beside what they were made from, `masses` gives
verdicts by the share of draws in which a claim holds, `conditions` finds where it holds, `spreads` draws figures,
`replications` have random numbers of their own.
`guardian` has the lives of a draw's users in the Guardian's world, which seven experiments share.
"""
