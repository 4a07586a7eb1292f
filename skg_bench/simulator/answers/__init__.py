"""The world of requests that are answered: users, corpus, truth and reactions."""
