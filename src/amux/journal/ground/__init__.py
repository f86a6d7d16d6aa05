"""Where a call stands: its workspace, the memory that is meant, the agent at work."""
