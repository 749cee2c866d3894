"""Hostile names of robots, joints and links: no control mark on the screen, no tag in a report, no odd file name."""

from __future__ import annotations

import random
import re
import tempfile
from html import escape
from pathlib import Path

from click.testing import CliRunner

import dynid
from dynid.cli import main
from dynid.report.page import Page

from .own_files import ARM

PARTS = ("; touch PWN;", "$(touch PWN)", "`touch PWN`", "../../PWN", "/etc/PWN", "-rf", "\u202e", "\u2066", "\x1b[2J",
         "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "*/ PWN /*", "\\", '"', "|", "\u2028", "[a](b)",
         "con", "NUL", "a" * 300, "\u5de5", "\U000e0001", "%s%n", "{joint}", "# x", "\t", " ",
         "\nnext: touch PWN")  # fmt: skip
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e0fff]")


def attack_names(count: int, seed: int) -> list[str]:
    """Check, write and generate code of a robot with hostile names."""
    rng, findings = random.Random(f"names-{seed}"), []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for number in range(count):
            robot, joint = ("".join(rng.sample(PARTS, rng.choice((1, 1, 2, 3)))) for _ in range(2))
            allowed = [re.sub("[\x00-\x08\x0b-\x1f]", "", name) for name in (robot, joint)]  # XML holds no others
            written = [escape(name).replace("\n", "&#10;") for name in allowed]
            named = ARM.replace('name="arm"', f'name="{written[0]}"').replace('"j1"', f'"{written[1]}"')
            (folder / "arm.urdf").write_text(named, encoding="utf-8")
            out = folder / f"code{number}"
            for words in (["check", "arm.urdf"], ["base", "arm.urdf"], ["codegen", "arm.urdf", "--no-verify", "--out"]):
                target = [str(out)] if words[0] == "codegen" else []
                path = [str(folder / word) if word == "arm.urdf" else word for word in words]
                done = CliRunner().invoke(main, [*path, *target])
                if done.exit_code == 70 or STEERING.search(done.output) or "\nnext: touch" in done.output:
                    findings.append(f"{words[0]} of {allowed}: {done.exit_code} {done.output[:200]!r}")
            findings += [f"file {file.name!r}" for file in out.rglob("*") if not re.fullmatch(r"[\w.-]+", file.name)]
            page = Page.of(allowed[0], [])
            if "<" in page.to_markdown() or "<script>alert" in page.to_html() or STEERING.search(page.to_html()):
                findings.append(f"a tag or a mark of {allowed[0]!r} in a report")
            if not re.fullmatch(r"(?![.-])[\w.-]{1,60}", dynid.safe_text.safe_name(allowed[0])):
                findings.append(f"file name of {allowed[0]!r}")
        findings += [f"{path} was written" for path in (folder / "PWN", Path("PWN")) if path.exists()]
    return findings
