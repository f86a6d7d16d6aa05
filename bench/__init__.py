"""Budgets, measured as ratios to a named peer in one run: `make bench`."""
