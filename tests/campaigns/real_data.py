"""The commands of docs/real-data.md on the real logs: held-out errors of rich, plain and prior model, and of the files.

``python tests/campaigns/real_data.py [NAME ...]`` prints the table; ``--write`` puts it into docs/real-data.md.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("DYNID_DATASETS", ROOT.parent / "shared" / "datasets"))
PAGE = ROOT / "docs" / "real-data.md"
HEADER = ["log", "rich %", "plain %", "prior %", "URDF %", "MJCF %", "verdict", "rich friction"]


def commands() -> dict[str, str]:
    """Name of a row -> its command, as the page states them."""
    found = re.findall(r"^(dynid identify .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    named = {}
    for command in found:
        name = re.search(r"channel_maps/(\w+)\.toml", command)
        band = re.search(r"band_hz=(\d+)", command)
        assert name is not None
        named[f"{name[1]}{f' {band[1]} Hz' if band else ''}"] = command
    return named


def measure(command: str) -> list[str]:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        words = shlex.split(command.replace("$DATA", str(DATA)).replace("--out result", f"--out {folder}/result"))
        run = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        result = json.loads(Path(folder, "result", "result.json").read_text())
    check, files = result["validation"], {file["format"]: file["relative_error_percent"] for file in result["files"]}
    errors = [check[f"{kind}_error_percent"] for kind in ("relative", "plain", "prior")]
    kept = [step["mechanism"] for step in result["selection"] if step["kept"]]
    verdict = "passed" if run.returncode == 0 else check["verdict"]
    return [*(f"{error:.2f}" for error in (*errors, files["URDF"], files["MJCF"])), verdict, "; ".join(kept)]


def main() -> None:
    """Measure the named rows, all by default."""
    wanted = [word for word in sys.argv[1:] if not word.startswith("--")]
    rows = [HEADER, ["---"] * len(HEADER)]
    for name, command in commands().items():
        if not wanted or any(name.startswith(word) for word in wanted):
            rows.append([name, *measure(command)])
            print(" | ".join(rows[-1]), flush=True)
    if "--write" in sys.argv:
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(re.sub(r"\| log \|.*?(?=\n\n)", table, page, count=1, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
