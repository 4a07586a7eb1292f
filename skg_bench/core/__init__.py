"""Code that all rooms share: Protocols, values that cross seams, draws and texts. Imports numpy and pyarrow only."""
