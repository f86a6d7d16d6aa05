"""The text of `agents.toml` as tables; loaded where the file exists, for what `tomllib` costs."""

import tomllib


def parse(text: str) -> dict[str, object]:
    """Read TOML; raises `ValueError` for what is none."""
    return tomllib.loads(text)
