"""Finding tasks, telling what changed since a hand-off, showing them to people."""
