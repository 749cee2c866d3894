"""The house rules, held by a walk over the syntax trees: layers, cycles, print and exit, public names, sizes."""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import dynid

ROOT = Path(dynid.__file__).parent
LAYERS = [
    ["lazy", "array_types", "safe_text"],
    ["errors"],
    ["findings"],
    ["tables"],
    ["safe_files"],
    ["plain_data"],
    ["spatial"],
    ["decompositions"],
    ["checks"],
    ["settings"],
    ["parallel"],
    ["terms"],
    ["robot"],
    ["dynamics", "tape"],
    ["compiled"],
    ["data_reduction"],
    ["identifiability"],
    ["excitation"],
    ["control_loop"],
    ["logs"],
    ["processing"],
    ["estimators"],
    ["diagnosis"],
    ["identification"],
    ["payload"],
    ["servos"],
    ["monitor"],
    ["fleet"],
    ["export"],
    ["report"],
    ["workflows"],
    ["__init__"],
    ["cli"],
    ["__main__"],
]
"""From the ground up; a module may import its own layer's folder and lower layers; siblings in one layer never meet."""
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
FILES = sorted(ROOT.rglob("*.py"))
LONGEST_FILE, LONGEST_BODY = 600, 60


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


@functools.cache
def tree(path: Path) -> ast.Module:
    """A file's syntax tree, parsed once for all rules."""
    return ast.parse(path.read_text())


def place(path: Path, node: ast.expr | ast.stmt) -> str:
    """Where an offence stands."""
    return f"{path.relative_to(ROOT)}, line {node.lineno}"


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    """Modules of the package that a file imports at run time, lazily or not."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in _run_time_nodes(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("dynid"))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dynid"):
            for alias in node.names:
                candidate = f"{node.module}.{alias.name}"
                yield candidate if _is_module(candidate) else node.module


def _run_time_nodes(node: ast.AST) -> Iterator[ast.AST]:
    waiting = [node]
    while waiting:
        for child in ast.iter_child_nodes(waiting.pop()):
            if isinstance(child, ast.expr):  # holds no import
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            yield child
            waiting.append(child)


@functools.cache
def _is_module(name: str) -> bool:
    path = ROOT.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def test_every_top_level_module_has_a_layer() -> None:
    present = {path.stem if path.is_file() else path.name for path in ROOT.iterdir() if _is_source(path)}
    assert present <= set(LEVEL), f"no layer for {present - set(LEVEL)}"


def _is_source(path: Path) -> bool:
    return path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists())


def test_imports_point_down() -> None:
    upward = []
    for path in FILES:
        here = layer(module_name(path))
        for target in imports(path):
            there = layer(target)
            if there != here and LEVEL[there] >= LEVEL[here]:
                upward.append(f"{module_name(path)} imports {target}")
    assert not upward


def test_no_import_cycles() -> None:
    graph = {module_name(path): set(imports(path)) - {module_name(path)} for path in FILES}
    TopologicalSorter(graph).prepare()  # its error names the cycle


def test_only_the_command_line_prints_and_exits() -> None:
    forbidden = {"print", "exit", "quit", "sys.exit", "os._exit", "eval", "exec"}
    library = [path for path in FILES if "cli" not in path.relative_to(ROOT).parts and path.name != "__main__.py"]
    calls = [(path, node) for path in library for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    assert not [f"{place(path, node)}: {dotted(node.func)}" for path, node in calls if dotted(node.func) in forbidden]


def dotted(node: ast.expr) -> str:
    """A name, or a name with its attributes; empty for every other expression."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def test_sizes_stay_within_the_budget() -> None:
    texts = {path: path.read_text() for path in FILES}
    assert not [path for path, text in texts.items() if text.count("\n") > LONGEST_FILE]
    assert not [path for path, text in texts.items() if "TODO" in text or "FIXME" in text]
    functions = [(path, node) for path in FILES for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef)]
    assert not [f"{place(path, node)}: {node.name}" for path, node in functions if body_lines(node) > LONGEST_BODY]


def body_lines(node: ast.FunctionDef) -> int:
    """Lines of a function's body without its docstring."""
    first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
    return (node.end_lineno or 0) - first.lineno + 1


def test_decompositions_of_data_are_the_robust_ones() -> None:
    pattern = re.compile(r"np\.linalg\.(svd|eigh|eigvalsh|eigvals|lstsq|matrix_rank|cond|pinv)\(")
    checked = [path for path in FILES if path.name != "decompositions.py"]
    found = [f"{path.relative_to(ROOT)}: {m.group()}" for path in checked for m in pattern.finditer(path.read_text())]
    assert not found, f"use dynid.decompositions: {found}"


def test_public_names_resolve() -> None:
    for name in dynid.__all__:
        assert getattr(dynid, name) is not None
    for info in pkgutil.walk_packages(dynid.__path__, "dynid."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{info.name}.{name}"


MOST_FILES = 16
"""Python files of one folder at one level, ``__init__.py`` included."""
SHARED_NAMES = {"__init__.py", "__main__.py", "base.py", "read.py", "write.py"}
"""File names that are patterns and may occur in several folders."""
TEXTS = {"advice", "caution", "cautions", "hint", "message", "note", "notes", "reason", "reasons", "remark", "remedy"}
"""Names of variables and fields that hold sentences for people."""
TEXT_METHODS = {"casefold", "count", "endswith", "find", "index", "lower", "partition", "removeprefix", "removesuffix",
                "replace", "rfind", "rpartition", "split", "startswith", "upper"}  # fmt: skip
ERRORS = {"e", "err", "error", "exc", "exception"}
"""Names of variables that hold exceptions."""

ALLOWED_READINGS = {
    "logs/readers/formats.py": "joins the lines of a foreign library's message, for display",
    "safe_files/records.py": "parts the reason and the place of msgspec's message, for display",
    "logs/readers/text.py": "the line that an error of pandas names, for display",
}
"""Files that may touch the text of a message, with the reason; none of them decides on it."""


def test_no_folder_is_crowded() -> None:
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in FILES)
    crowded = {folder: count for folder, count in counts.items() if count > MOST_FILES}
    assert not crowded


def test_no_two_files_have_one_name() -> None:
    counts = Counter(path.name for path in FILES if path.name not in SHARED_NAMES)
    assert not [name for name, count in counts.items() if count > 1]


def test_no_decision_reads_the_text_of_a_message() -> None:
    checked = [path for path in FILES if path.relative_to(ROOT).as_posix() not in ALLOWED_READINGS]
    read = [f"{place(path, node)}: {ast.unparse(node)}" for path in checked for node in _readings(tree(path))]
    assert not read, "decide on a code or a field"


def _readings(tree: ast.AST) -> Iterator[ast.expr]:
    """Comparisons, searches and replacements in sentences."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            looks = any(isinstance(op, ast.In | ast.NotIn | ast.Eq | ast.NotEq) for op in node.ops)
            if looks and any(_is_text(side) for side in sides):
                yield node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            by_pattern = dotted(node.func.value) == "re" and any(_is_text(part) for part in node.args)
            if by_pattern or (node.func.attr in TEXT_METHODS and _is_text(node.func.value)):
                yield node


def _is_text(node: ast.expr) -> bool:
    """Whether an expression is a sentence for people, as far as its name tells."""
    if isinstance(node, ast.Name):
        return node.id in TEXTS
    if isinstance(node, ast.Attribute):
        return node.attr in TEXTS or (node.attr == "args" and dotted(node.value) in ERRORS)
    if isinstance(node, ast.Subscript):
        return _is_text(node.value)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            return _is_text(node.func.value)
        return dotted(node.func) in ("str", "repr") and any(dotted(argument) in ERRORS for argument in node.args)
    return False


def test_readings_of_messages_are_found() -> None:
    for line in ("'law' in note", "str(error).replace('a', 'b')", "re.sub('a', 'b', finding.message)",
                 "any(x.startswith('the') for x in y) or note.lower().startswith('the')", "error.args[0] == 'a'",
                 "[note for note in notes if not note.startswith('not')]"):  # fmt: skip
        assert list(_readings(ast.parse(line))), line
    for line in ("finding.code == 'controller'", "replace(run, notes=())", "f'{reason}.'", "str(error)"):
        assert not list(_readings(ast.parse(line))), line


def test_numeric_constants_say_what_they_are() -> None:
    silent = []
    for path in FILES:
        body = tree(path).body
        for node, below in zip(body, [*body[1:], None], strict=True):
            names = _numeric_constants(node)
            documented = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            if names and not documented:
                silent.append(f"{place(path, node)}: {', '.join(names)}")
    assert not silent


def _numeric_constants(node: ast.stmt) -> list[str]:
    """Names in capitals that a statement of a module binds to numbers."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None or not _is_numeric(node.value):
        return []
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    names = [ast.unparse(part) for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return names if all(name == name.upper() for name in names) else []


def _is_numeric(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return _is_numeric(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_numeric(node.left) and _is_numeric(node.right)
    return isinstance(node, ast.Tuple) and bool(node.elts) and all(_is_numeric(part) for part in node.elts)


def test_the_package_does_not_use_its_laboratory() -> None:
    pattern = re.compile(r"^\s*(?:from|import) (?:papers|benchmarks)\b", re.MULTILINE)
    assert not [path.relative_to(ROOT) for path in FILES if pattern.search(path.read_text())]
