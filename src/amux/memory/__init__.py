"""The user's documents, one scope at a time."""
