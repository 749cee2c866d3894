"""The verdicts on the page of the real logs: one for each command, with a reason where it is not passed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "campaigns"))

from real_verdicts import PAGE, explain_verdict


def test_every_command_of_the_page_has_a_verdict_and_a_reason_where_it_does_not_pass() -> None:
    page = PAGE.read_text(encoding="utf-8")
    commands = re.findall(r"^dynid identify .*channel_maps/(\w+)\.toml", page, re.MULTILINE)
    section = page.partition("\n## Verdicts\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")]
    assert [row[0].split()[0] for row in rows[2:]] == commands
    assert all(bool(reason) == (verdict != "passed") for _, verdict, reason, _ in rows[2:])


def test_the_reason_names_the_finding_and_its_log() -> None:
    doubt = "two sets of parameters explain the log better than one"
    finding = {"code": "change", "where": "a.mat: model", "message": doubt}
    other = {"code": "spikes", "where": "a.mat: effort", "message": "some values are spikes"}
    validation = {
        "verdict": f"not passed: 8 % is within the limit, but {doubt}",
        "passed": False,
        "doubts": [f"a.mat: {doubt}"],
    }
    assert explain_verdict(validation, [other, finding]) == ("not passed", f"`change`, a.mat: model: {doubt}")
    failed = {"verdict": "failed: 20 % exceeds the limit of 15 %", "passed": False, "doubts": []}
    assert explain_verdict(failed, [other]) == ("failed", "20 % exceeds the limit of 15 %")
    passed = {"verdict": "passed: 2 % on held-out data", "passed": True, "doubts": []}
    assert explain_verdict(passed, [other]) == ("passed", "")
