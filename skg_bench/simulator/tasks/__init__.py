"""Tasks of one's own: messages of users, each with a reference against which what is said is checked."""
