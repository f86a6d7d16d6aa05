"""SHA-256 as it is built into Python, for starts that must be quick.

`hashlib` gives OpenSSL's, which is faster for what is long, and takes 3 ms to load; the standard
library's own `random` does the same as here.
"""

import sys

from amux.core.late import Late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        sha256 = Late("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:  # a Python that was built without
        sha256 = Late("hashlib").sha256

__all__ = ["sha256"]
