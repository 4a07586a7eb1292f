"""Functions of several routers: `neighbourhood` of a message; `index`, `route` of `one_book` that many share."""
