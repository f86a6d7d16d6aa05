"""One verb of the command line, as a value: its name, what it takes, what it may be refused with.

Rule 1: a row knows its own usage line; whoever shows it adds layout only.
"""

from amux.errors import Code


class Positional:
    """A value that is known by its place."""

    __slots__ = ("about", "choices", "is_many", "is_required", "key", "metavar")

    def __init__(
        self,
        key: str,
        metavar: str,
        about: str,
        *,
        required: bool = True,
        many: bool = False,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.key = key
        self.metavar = metavar
        self.about = about
        self.is_required = required
        self.is_many = many
        self.choices = choices

    @property
    def usage(self) -> str:
        """Show it as a usage line does."""
        shown = self.metavar + ("…" if self.is_many else "")
        return shown if self.is_required else f"[{shown}]"


class Option:
    """A value that is known by its name; `kind` is flag, text or integer."""

    __slots__ = ("about", "choices", "is_required", "kind", "metavar", "name")

    def __init__(
        self,
        name: str,
        metavar: str,
        about: str,
        *,
        kind: str = "text",
        required: bool = False,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.metavar = metavar
        self.about = about
        self.kind = kind
        self.is_required = required
        self.choices = choices

    @property
    def key(self) -> str:
        """Name it as arguments of calls are named."""
        return self.name.replace("-", "_")

    @property
    def usage(self) -> str:
        """Show it as a usage line does."""
        shown = f"--{self.name} {self.metavar}".strip()
        return shown if self.is_required else f"[{shown}]"


class Verb:
    """One row: what it is called, takes, does, and may be refused with."""

    __slots__ = (
        "about", "examples", "handler", "name", "options", "positionals", "refusals", "rest",
        "summary",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        handler: str,
        summary: str,
        *takes: Positional | Option,
        about: str = "",
        examples: tuple[tuple[str, str], ...],
        refusals: tuple[Code, ...] = (),
        rest: Positional | None = None,
    ) -> None:
        self.rest = rest
        """What all words after `--` are, one by one."""
        self.name = name
        self.handler = handler
        self.summary = summary
        self.positionals = tuple(one for one in takes if isinstance(one, Positional))
        self.options = tuple(one for one in takes if isinstance(one, Option))
        self.about = about
        self.examples = examples
        self.refusals = (Code.INVALID_ARGUMENT, *refusals)

    @property
    def words(self) -> tuple[str, ...]:
        """Split its name."""
        return tuple(self.name.split(" "))

    @property
    def option_names(self) -> tuple[str, ...]:
        """Name its options, without dashes."""
        return tuple(option.name for option in self.options)

    @property
    def usage(self) -> str:
        """Show how it is called, in one line."""
        parts = [one.usage for one in self.positionals] + [one.usage for one in self.options]
        if self.rest is not None:
            parts.append(f"[-- {self.rest.usage.strip('[]')}]")
        return " ".join(["amux", self.name, *parts])


# What most rows say: how an answer is printed, and what a call of the Hub may be refused with.
JSON = Option("json", "", "answer in JSON, also on a terminal", kind="flag")
HUB = (Code.BUSY, Code.UNAVAILABLE, Code.PERMISSION_DENIED, Code.UPGRADE_REQUIRED)
