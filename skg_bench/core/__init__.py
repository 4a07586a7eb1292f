"""What all parts share: types, schemas, draws, the skillbook's algebra. Imports numpy and pyarrow only."""
