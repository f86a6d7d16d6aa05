"""The session memory of a workspace and its tasks, on the agent's machine; no Hub needed."""
