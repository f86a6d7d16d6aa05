"""Making a request a task, once; owning and confirming it."""
