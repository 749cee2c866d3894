"""Writes ``src/dynid/__init__.pyi`` from the table of public names: ``python tests/support/public_stub.py``."""

from __future__ import annotations

from pathlib import Path

import dynid

PATH = Path(dynid.__file__).with_suffix(".pyi")


def stub() -> str:
    """The text of the stub."""
    lines = ["# Types of the public names; written by tests/support/public_stub.py.", ""]
    for module, names in sorted([*dynid._HOME.items(), ("dynid.robot", ["robots"])]):
        lines += [f"from {module} import {'zoo' if name == 'robots' else name} as {name}" for name in sorted(names)]
    lines += ["", "__version__: str", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PATH.write_text(stub())
