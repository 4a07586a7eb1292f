"""The smallest session that shows a difference: found (`shrink`), kept as a file (`cases`), printed (`commands`)."""
