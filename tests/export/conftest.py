from __future__ import annotations

import pytest

from dynid.export.c.c_check import find_compiler


@pytest.fixture
def compiler() -> str:
    path = find_compiler()
    if path is None:
        pytest.skip("no C compiler on this machine")
    return path
