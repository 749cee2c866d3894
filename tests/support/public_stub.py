"""Writes the stubs of all packages with lazily loaded names: ``python tests/support/public_stub.py``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import dynid

ROOT = Path(dynid.__file__).parent
HEAD = "# Types of the public names; written by tests/support/public_stub.py."


def stubs() -> dict[Path, str]:
    """Path of each stub -> its text."""
    texts = {ROOT / "__init__.pyi": _front_door()}
    for name in dynid.PACKAGES:
        package = import_module(f"dynid.{name}")
        if hasattr(package, "NAMES"):
            modules = {f"dynid.{name}.{module}": names for module, names in package.NAMES.items()}
            texts[ROOT / name / "__init__.pyi"] = "\n".join([HEAD, "", *_imports(modules), ""])
    return texts


def _front_door() -> str:
    packages = [f"from dynid import {name} as {name}" for name in dynid.PACKAGES]
    names = [*_imports(dynid._HOME), "from dynid.robot import zoo as robots", "", f"__all__ = {sorted(dynid.__all__)}"]
    return "\n".join([HEAD, "", *packages, *names, "PACKAGES: tuple[str, ...]", "__version__: str", ""])


def _imports(modules: dict[str, list[str]]) -> list[str]:
    return [
        f"from {module} import {name} as {name}" for module, names in sorted(modules.items()) for name in sorted(names)
    ]


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")
