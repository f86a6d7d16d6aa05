"""Work on a task that is owned, and its end, which rests on evidence."""
