"""The world of advice: users who are about to buy something on impulse, and what they do (Pause's Guardian).

Its metrics, sentences and charts stand in `telling.toml`, the columns of its outcome in `outcome`, and its kinds of
feedback in `signals`.
"""
