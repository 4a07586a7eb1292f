"""Users who tell an assistant codes, change some, and ask for them later: what it says is read, and judged exactly."""
