"""Modules that are loaded when something of them is first asked for."""

import sys

import pytest

from amux.core.late import Late


def test_a_module_is_loaded_when_it_is_first_asked() -> None:
    sys.modules.pop("wave", None)
    late = Late("wave")
    assert "wave" not in sys.modules
    assert late.WAVE_FORMAT_PCM == 1
    assert "wave" in sys.modules
    with pytest.raises(AttributeError):
        _ = late.nothing
    with pytest.raises(AttributeError):
        late.WAVE_FORMAT_PCM = 2
