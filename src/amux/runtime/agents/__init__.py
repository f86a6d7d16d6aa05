"""The agents that amux starts with memory: one module each, and none knows another."""
