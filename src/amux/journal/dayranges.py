"""What an index keeps of a day: where its sections and their cards are (J58).

Rule 1: an answer is made from this data, whether it was read from an index or made from a parse
        just now; that is why both answers are equal (J61).
"""


def key(date: str) -> str:
    """Name the one partition of a day; `date` is YYYYMMDD."""
    return f"daily:{date}"


def partition(data: bytes) -> object:
    """Make the partition of a day's whole bytes."""
    raise NotImplementedError
