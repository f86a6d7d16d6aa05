"""Values that all rooms share; no I/O, no clock, no chance."""
