"""Thousands of hostile robot and joint names: the code stays the same, compiles, and nothing is injected.

Run: python tests/campaigns/c_hostile_names.py [names, default 5000].
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from dynid.export.c.c_check import FLAGS, find_compiler
from dynid.export.c.c_package import generate_c
from dynid.robot import zoo
from dynid.safe_text import c_identifier

PIECES = [
    "int",
    "*/",
    "/*",
    "//",
    "\n",
    "\r",
    "\\",
    '"',
    "'",
    "??/",
    "#include <x>",
    "é",
    "関節",
    "\u202e",
    "\x00",
    "%s",
    "a",
    "_",
]
PIECES += [
    "};",
    "main",
    "9",
    " ",
    "\t",
    "namespace",
    "class",
    "{",
    "}",
    "(",
    "x" * 10_000,
    "\ud800",
    "NaN",
    "__",
    "system()",
]


def main(count: int) -> int:
    rng = random.Random(0)
    base = zoo.scara()
    plain = generate_c(base, ["gravity"], name="arm")
    header = comment_free(plain.files["arm.h"])
    failures, batch = 0, []
    for number in range(count // 5):
        names = ["".join(rng.choices(PIECES, k=rng.randint(0, 6))) + f" {number} {k}" for k in range(5)]
        joints = tuple(replace(joint, name=name) for joint, name in zip(base.joints, names, strict=False))
        robot = replace(base, name=names[4], joints=joints)
        package = generate_c(robot, ["gravity"], name="arm")
        found = comment_free(package.files["arm.h"])
        same = package.files["arm.c"] == plain.files["arm.c"] and len(found.split()) == len(header.split())
        safe = re.fullmatch(r"[a-z][a-z0-9_]{0,47}", c_identifier(names[4])) is not None
        failures += not (same and safe)
        batch.append(package.files["arm.h"])
    with tempfile.TemporaryDirectory() as folder:
        for number, text in enumerate(batch):
            Path(folder, f"h{number}.h").write_text(text)
        uses = [f'#include "h{number}.h"\n#undef ARM_H\n#undef ARM_DOF\n' for number in range(len(batch))]
        for number, use in enumerate(uses):
            Path(folder, f"u{number}.c").write_text(use + "int unused;\n")
        compiler = find_compiler() or "cc"
        for start in range(0, len(uses), 100):
            sources = [f"u{number}.c" for number in range(start, min(start + 100, len(uses)))]
            done = subprocess.run(
                [compiler, *FLAGS, "-fsyntax-only", *sources], cwd=folder, capture_output=True, text=True
            )
            if done.returncode:
                failures += 1
                print(done.stderr[:1000])
    print(f"{count} names in {len(batch)} robots: {failures} failures")
    return failures


def comment_free(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000))
