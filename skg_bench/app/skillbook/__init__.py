"""`skg-bench skillbook`: books of runs and books in files, shown, compared, changed and converted."""
