"""Starting other processes, once, correctly."""
