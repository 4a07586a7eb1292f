"""Configuration, command line and wiring; the only part that knows Hydra.

`cli` parses commands, `compose` and `overrides` make a configuration, `building` makes what it names, `launch` runs it.
`result_tables` and `table_blocks` print; `plain_errors` ends what a user can cause; `trust` decides what files of
others may do.
"""
