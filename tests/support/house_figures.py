"""Figures of the source tree, for docs/architecture.md: ``python tests/support/house_figures.py [SRC]``."""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections import Counter
from pathlib import Path

EQUATION = re.compile(r"\beqs?\. ?\(?[A-Z]?\d")


def figures(source: Path) -> dict[str, object]:
    """Name of each figure -> its value."""
    files = sorted(source.rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    lengths = {path: text.count("\n") for path, text in texts.items()}
    folders = Counter(path.parent for path in files)
    longest = max(lengths, key=lambda path: lengths[path])
    crowded, most = folders.most_common(1)[0]
    return {
        "files": len(files),
        "lines": sum(lengths.values()),
        "names in `dynid`": len(_public_names(source / "__init__.py")),
        "most options of one command": max(_options(texts), default=0),
        "median file [lines]": int(statistics.median(lengths.values())),
        "longest file [lines]": f"{lengths[longest]} ({longest.relative_to(source)})",
        "most files in one folder": f"{most} ({crowded.relative_to(source) or '.'})",
        "named numeric constants": sum(_constants(text) for text in texts.values()),
        "lines with an equation number outside studies/papers": sum(
            len(EQUATION.findall(text)) for path, text in texts.items() if "papers" not in path.parts
        ),
        "`refuse_*` functions": _matches(r"^\s*def _?refuse_", texts),
        "`assert ... is not None`": _matches(r"assert .* is not None", texts),
    }


def _matches(pattern: str, texts: dict[Path, str]) -> int:
    return sum(len(re.findall(pattern, text, re.MULTILINE)) for text in texts.values())


def _public_names(path: Path) -> set[str]:
    """Names in the tables of lazily loaded names of the package's front door."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "_HOME" for target in targets):
            table = ast.literal_eval(node.value)  # type: ignore[union-attr]
            return {name for names in table.values() for name in names} | {"robots", "__version__"}
    return set()


def _options(texts: dict[Path, str]) -> list[int]:
    """Number of options of every command: decorators of its function that are options."""
    counts = []
    for path, text in texts.items():
        if "cli" not in path.parts:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                names = [ast.unparse(decorator) for decorator in node.decorator_list]
                counts.append(sum(name.startswith("click.option") or name.isupper() for name in names))
    return counts


def _constants(text: str) -> int:
    """Module-level upper-case names bound to numbers."""
    count = 0
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
            upper = all(target.id.lstrip("_").isupper() for target in node.targets)  # type: ignore[attr-defined]
            count += upper and _is_number(node.value)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            values = node.value.elts if isinstance(node.value, ast.Tuple) else []
            count += sum(map(_is_number, values))
    return count


def _is_number(node: ast.AST) -> bool:
    allowed = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    constants = [n for n in ast.walk(node) if isinstance(n, ast.Constant)]
    numbers = all(isinstance(n.value, int | float) and not isinstance(n.value, bool) for n in constants)
    return bool(constants) and numbers and all(isinstance(n, allowed) for n in ast.walk(node))


if __name__ == "__main__":
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "src" / "dynid"
    sys.stdout.writelines(f"{name:55} {value}\n" for name, value in figures(root).items())
