"""What `app` hands to a face of the agent's side: streams, settings, a clock, late imports.

Rule 1: a face knows its surroundings by this object alone; nothing here is built by a face.
Rule 2: the shapes stand in `context.pyi`: importing `typing` would cost each start 6 ms, and
        `app` may hand over anything that has them.
"""


class Context:
    """The surroundings of one run of a face."""

    __slots__ = ()


class Settings:
    """The part of the configuration that the agent's side uses."""

    __slots__ = ()


class Input:
    """A binary stream to read."""

    __slots__ = ()


class Output:
    """A binary stream to write."""

    __slots__ = ()


class Answer:
    """What a call of the Hub gave."""

    __slots__ = ()


class Caller:
    """Something that makes the Hub's calls: a client, or the administrator's calls in process."""

    __slots__ = ()


class Place:
    """Where a process works: its start directory, whether a person named it, home, and uid."""

    __slots__ = ()


class Desk:
    """The journal of one process: calls by name."""

    __slots__ = ()
