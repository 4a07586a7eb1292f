"""The folder of a run: schemas, manifest, shards, digests, locks and checkpoints.

The only room that knows the files of a run. `schema` declares the columns of the logs, `manifest` says what was run,
`shards` writes logs, `run` reads them back, `lock` keeps two processes apart, `wholeness` finds what is missing.
"""
