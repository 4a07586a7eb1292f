"""The folder of a run: schemas, manifest, shards, digests, locks and checkpoints."""
