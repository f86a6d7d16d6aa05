"""What a task is, as values and pure machines, and the ring around one authority call."""
