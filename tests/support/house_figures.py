"""Figures of the source tree, for docs/architecture.md.

``python tests/support/house_figures.py [SRC]`` prints them; ``--write`` in place of SRC writes those of this tree into
the last column of the table in docs/architecture.md.
"""

from __future__ import annotations

import ast
import os
import re
import statistics
import subprocess
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
        "lines of code, without docstrings, comments and blank lines": sum(map(_code_lines, texts.values())),
        "names in `dynid`": len(_public_names(source / "__init__.py")),
        "most options of one command": _most_options(source),
        "median file [lines]": int(statistics.median(lengths.values())),
        "longest file [lines]": f"{lengths[longest]} ({longest.relative_to(source)})",
        "most files in one folder": f"{most} ({crowded.relative_to(source) or '.'})",
        "named numeric constants": sum(_constants(text) for text in texts.values()),
        "lines with an equation number": sum(len(EQUATION.findall(text)) for text in texts.values()),
        "`refuse_*` functions": _matches(r"^\s*def _?refuse_", texts),
        "`assert ... is not None`": _matches(r"assert .* is not None", texts),
    }


def _matches(pattern: str, texts: dict[Path, str]) -> int:
    return sum(len(re.findall(pattern, text, re.MULTILINE)) for text in texts.values())


def _code_lines(text: str) -> int:
    """Lines that are not blank, not a comment and not part of a string that stands alone."""
    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") and n not in prose for n, line in lines)


def _public_names(path: Path) -> set[str]:
    """Names in the tables of lazily loaded names of the package's front door."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "_HOME" for target in targets):
            table = ast.literal_eval(node.value)  # type: ignore[union-attr]
            return {name for names in table.values() for name in names} | {"robots", "__version__"}
    return set()


def _most_options(source: Path) -> str:
    """Number of options of the command that has most, without --help, as the command line of that tree offers them."""
    code = (
        "from dynid.cli import main\n"
        "counts = {n: sum(p.param_type_name == 'option' and p.name != 'help' for p in c.params)\n"
        "          for n, c in main.commands.items()}\n"
        "name = max(counts, key=counts.get)\n"
        "print(f'{counts[name]} ({name})')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(source.resolve().parent)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


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


def write_column(page: Path, values: dict[str, object]) -> None:
    """Write figures into the last column of the page's rows that begin with their names, one row for each."""
    lines: list[str] = []
    waiting = dict(values)
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = line.split(" | ")
        name = cells[0].removeprefix("| ")
        if not line.startswith("| ") or name not in values:
            lines.append(line)
        elif name in waiting:
            lines.append(" | ".join([*cells[:-1], f"{waiting.pop(name)} |"]))
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    root = Path(__file__).parents[2]
    if sys.argv[1:] == ["--write"]:
        write_column(root / "docs" / "architecture.md", figures(root / "src" / "dynid"))
    else:
        tree = Path(sys.argv[1]) if len(sys.argv) > 1 else root / "src" / "dynid"
        sys.stdout.writelines(f"{name:62} {value}\n" for name, value in figures(tree).items())
