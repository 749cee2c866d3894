"""What is made at its first use only: the public names of a package (`lazy_names`), and `cached_property`.

The ``__init__.py`` of a package calls `lazy_names`; importing the package then loads none of its modules and stays
quick, whatever they import.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801
        """Python 3.12's version for Python 3.11, whose own takes a lock.

        A process that is forked while another thread holds that lock would wait for it without end.
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """The value, computed at the first use."""
            if instance is None:
                return self
            if self.attrname not in instance.__dict__:
                instance.__dict__[self.attrname] = self.func(instance)
            return instance.__dict__[self.attrname]


def lazy_names(
    package: str, names: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Make the ``__all__``, ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: The package's ``__name__``.
        names: Module of the package -> its public names.

    Returns:
        The three, to be assigned to these names in the package's ``__init__.py``. Python calls ``__getattr__(name)``
        for a name that the package does not have yet; ours imports the module of that name.
    """
    module_of = {name: f"{package}.{module}" for module, offered in names.items() for name in offered}

    def load(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(module_of[name]), name)

    return sorted(module_of), load, lambda: sorted(module_of)
