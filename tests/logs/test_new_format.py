"""A new log format is one new file and one line in the registry: done here, on a copy of the package."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import dynid

ADAPTER = '''"""Logs of one number per line, each with the name of its column: ``q1 0.25``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dynid.logs.readers.base import Options, Table, as_column


def read(path: Path, options: Options, rows: int) -> Iterator[Table]:
    """Read the numbers of every column."""
    columns: dict[str, list[float]] = {}
    for line in path.read_text().splitlines()[1:]:
        name, number = line.split()
        columns.setdefault(name, []).append(float(number))
    yield Table(columns={name: as_column(values) for name, values in columns.items()})
'''
LINE = '    Format("pairs", (".pairs",), ((0, b"PAIRS"),)),\n'
BEFORE = '    Format("text",'
USE = """
import sys
from dynid.logs.reading import read_recording
log = read_recording(sys.argv[1], channel_map={
    "time": {"column": "t", "unit": "s"}, "position": {"columns": "q1", "unit": "rad"},
})
print(log.time.tolist(), log.q.ravel().tolist())
"""


def test_a_format_is_one_file_and_one_line(tmp_path: Path) -> None:
    package = tmp_path / "dynid"
    shutil.copytree(Path(dynid.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "logs/readers/pairs.py").write_text(ADAPTER)
    registry = package / "logs/readers/formats.py"
    text = registry.read_text()
    assert text.count(BEFORE) == 1
    registry.write_text(text.replace(BEFORE, LINE + BEFORE))
    log = tmp_path / "run.bin"  # found by its first bytes
    log.write_text("PAIRS\nt 0.0\nq1 0.25\nt 0.1\nq1 0.5\n")
    done = subprocess.run(
        [sys.executable, "-c", USE, str(log)], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[0.0, 0.1] [0.25, 0.5]", done.stderr
