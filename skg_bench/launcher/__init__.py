"""Launchers: how the tasks of a run are spread over processes."""
