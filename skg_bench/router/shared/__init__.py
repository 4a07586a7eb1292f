"""What several routers use: `neighbourhood` of a message; an `index` and a `route` over `one_book` that many share."""
