"""What every read tells beside its own: source, coverage, warnings, identity (J56, J57).

Rule 1: `complete` is said only of a file that was read whole and understood whole.
Rule 2: an identity covers what was returned and nothing of when, by which plan or index: equal
        questions on equal bytes have equal identities.
"""

import unicodedata
from collections.abc import Iterable, Mapping

from amux.core import canonical
from amux.journal.call.errand import Errand
from amux.journal.remark import UNVERIFIED, Remark, as_json
from amux.journal.store.window import IDENTITY_SCHEMA, Window

PARTIAL = "canonical-source-partial"
MISSING = "source-missing"

Json = dict[str, object]


def put_together(
    schema: str,
    errand: Errand,
    window: Window,
    content: Mapping[str, object],
    remarks: Iterable[Remark],
    *,
    index_receipt: Json | None = None,
    is_document: bool = False,
) -> Json:
    """Make the answer of a read: its content fields, and J56's that depend on its file."""
    noticed = tuple(remarks)
    return {
        "schemaVersion": schema,
        "query": errand.query,
        "source": window.source(),
        "coverage": coverage(window, noticed, is_document=is_document),
        **content,
        "warnings": as_json(noticed),
        "indexReceipt": index_receipt,
        "contentIdentity": identity(errand.tool, window.path, _timeless(content)),
        "nextCall": None,
    }


def coverage(window: Window, remarks: Iterable[Remark], *, is_document: bool) -> Json:
    """Tell how much of the file an answer rests on."""
    codes = [remark.code for remark in remarks if remark.code in UNVERIFIED]
    state, reason = "complete", None
    if window.is_cut:
        state, reason = "partial", PARTIAL
    elif not window.exists or codes:
        state, reason = "unverified", codes[0] if window.exists else MISSING
    return {
        "state": state,
        "proves": "document" if is_document and not window.is_cut else "returned-ranges",
        "fromByte": window.start,
        "toByte": window.total,
        "totalBytes": window.total,
        "reason": reason,
    }


def identity(tool: str, path: str, content: Mapping[str, object]) -> Json:
    """Name what an answer returned (J57)."""
    data = canonical.encode(content)
    return {
        "schemaVersion": IDENTITY_SCHEMA,
        "algorithm": "sha256",
        "sourceKey": unicodedata.normalize("NFC", f"{tool}:{path}"),
        "contractVersion": 1,
        "digest": canonical.digest(data),
        "bytes": len(data),
    }


def _timeless(content: Mapping[str, object]) -> Json:
    """Leave out when files were touched: equal bytes have equal identities."""
    return {
        key: {name: one for name, one in value.items() if name != "modifiedAt"}
        if isinstance(value, Mapping)
        else value
        for key, value in content.items()
    }
