"""Published packages as peers of `curator=peer`: a program each, which imports nothing of this project and runs in an
environment of its own. Each is the one file that imports its package.
"""
