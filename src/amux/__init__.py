"""amux: one memory for every coding agent, owned by its user."""

__version__ = "0.1.0"  # a constant: reading package metadata would cost each start 47 ms
