"""The built-in SHA-256 against the one of OpenSSL."""

import hashlib
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from amux.core.sha import sha256


@given(st.binary(max_size=300))
def test_it_is_the_same_digest(data: bytes) -> None:
    assert sha256(data).hexdigest() == hashlib.sha256(data).hexdigest()


def test_openssl_is_not_loaded_for_it() -> None:
    code = "import sys, amux.core.sha; assert not {'hashlib', '_hashlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
