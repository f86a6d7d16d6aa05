"""Child agents: what they may do, what they hand in, what becomes of it."""
