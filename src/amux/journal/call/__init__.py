"""One call: the tools and their arguments, who asks and from where, under which read plan."""
