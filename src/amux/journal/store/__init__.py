"""Files of a workspace: read within a window, written by one procedure, indexed."""
