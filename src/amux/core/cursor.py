"""An opaque place in a listing, bound to its question.

Rule 1: a cursor opens only for the question and the caller that it was made for (M34).
Rule 2: any other is `cursor_stale`; it is never taken for the first page.
"""

import base64
import binascii
import hashlib
import hmac

from amux.errors import CursorStale

_MAC_BYTES = 16


def seal(key: bytes, question: tuple[str, ...], place: str) -> str:
    """Hide a place in a text that only the same question opens again."""
    raw = place.encode("utf-8")
    return base64.urlsafe_b64encode(_mac(key, question, raw) + raw).decode("ascii").rstrip("=")


def unseal(key: bytes, question: tuple[str, ...], cursor: str) -> str:
    """Give the place back, or refuse a cursor of another question as `cursor_stale`."""
    try:
        packed = base64.b64decode(
            cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True
        )
        mac, raw = packed[:_MAC_BYTES], packed[_MAC_BYTES:]
        if hmac.compare_digest(mac, _mac(key, question, raw)):
            return raw.decode("utf-8")
    except (UnicodeError, binascii.Error):
        pass  # refused below, in the same words: a caller learns nothing from the difference
    raise CursorStale(
        "the cursor belongs to another question", hint="start the listing again without a cursor"
    )


def _mac(key: bytes, question: tuple[str, ...], raw: bytes) -> bytes:
    message = b"\0".join([*(part.encode("utf-8") for part in question), raw])
    return hmac.new(key, message, hashlib.sha256).digest()[:_MAC_BYTES]
