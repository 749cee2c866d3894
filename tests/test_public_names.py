"""The table of public names, its stub, and quick loading."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import dynid
from support.public_stub import stubs


def test_the_stubs_are_up_to_date() -> None:
    for path, text in stubs().items():
        assert path.read_text() == text, "run make pages"


def test_the_front_door_is_small() -> None:
    assert sum(len(names) for names in dynid._HOME.values()) <= 66


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "llvmlite", "clarabel")
    code = f"import sys, dynid, dynid.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "said", ["PD: it is dynid.control_loop.PD", "gate: it is dynid.diagnosis", "fit_all: CHANGELOG"]
)
def test_a_moved_name_says_where_it_stands(said: str) -> None:
    name, _, place = said.partition(": ")
    with pytest.raises(AttributeError, match=place):
        getattr(dynid, name)


def test_no_module_hides_a_public_name_of_its_package() -> None:
    """Python sets a module as an attribute of its package when it is imported, over any lazy name."""
    for name in dynid.PACKAGES:
        offered = getattr(import_module(f"dynid.{name}"), "NAMES", {})
        hidden = set(offered) & {word for words in offered.values() for word in words}
        assert not hidden, f"dynid.{name}: {hidden}"


def test_python_ends_without_freeing_types_of_msgspec() -> None:
    """Their release crashes in some processes; what is frozen, Python's last collection leaves alone."""
    code = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0)); import dynid.logs.channel_map"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "True\n"
