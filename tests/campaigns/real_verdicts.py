"""The verdicts of the commands of docs/real-data.md, and the simulators that load the robots which they write.

Run ``python tests/campaigns/real_verdicts.py``: it runs the commands, and nothing else, and writes that section of the
page anew. `real_data` writes the whole page.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from real_logs import DATA, ROOT, SETS, DataSet

import dynid
from dynid.cli import main as dynid_command
from dynid.links.identify import Identification
from dynid.tables import Table

PAGE = ROOT / "docs" / "real-data.md"
FINGERS = ("--hold", "panda_finger_joint1", "--hold", "panda_finger_joint2")
COMMANDS = {
    "tx40": ("DATA/tx40/tx40_mdh_modified.urdf", "DATA/tx40", "--hold-out", "every:3:0.75", "--set", "dead_band=0.02"),
    "panda_gaz": (
        "DATA/panda_gaz/panda.urdf",
        "DATA/panda_gaz",
        *FINGERS,
        "--hold-out",
        "40%",
        "--set",
        "max_gap_s=0.02",
    ),
    "panda_unisa": ("DATA/panda_unisa/panda.urdf", "DATA/panda_unisa", *FINGERS, "--hold-out", "40%"),
    "ur10_unisa": ("DATA/ur10_unisa/ur10_robot.urdf", "DATA/ur10_unisa", "--hold-out", "40%"),
    "kuka_kr300": (
        *("robots/kuka_kr300.xml", "DATA/kuka_kr300/rec_FF_A.mat", "DATA/kuka_kr300/rec_FF_B.mat"),
        *("--validate", "DATA/kuka_kr300/rec_FF_C.mat", "--set", "springs=joint2"),
    ),
    "yumi_ft": ("robots/yumi.xml", "DATA/yumi_ft/gravitylog.mat", "--hold-out", "40%", "--set", "dead_band=0.01"),
}
"""Arguments of `dynid identify` for each data set: robot, logs, held-out part, samples that are left out."""


@dataclass(frozen=True, kw_only=True)
class Done:
    """What one command did."""

    fit: Identification
    content: dict[str, Any]
    """Its result file."""
    seconds: float
    """Processor time [s]."""
    verdict: str
    """``passed``, ``not passed`` or ``failed``."""
    reason: str
    """Why it is not ``passed``."""
    loaders: str
    """Simulators that accepted the written robots."""


def words(data: DataSet, cutoff: float | None) -> list[str]:
    """Write the command for a data set and an evaluation cutoff, without its output folder."""
    band = [] if cutoff is None else ["--set", f"band_hz={cutoff:g}", "--set", f"trim_s={data.trim_s:g}"]
    return [
        "identify",
        *COMMANDS[data.name],
        "--map",
        f"channel_maps/{data.name}.toml",
        *band,
        "--set",
        "judge_rest=true",
    ]


def run_command(arguments: list[str]) -> Done:
    """Run a command as a user would."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        given = [str(DATA / word[5:]) if word.startswith("DATA/") else word for word in arguments]
        done = CliRunner().invoke(dynid_command, [*given, "--out", folder, "--force"])
        assert done.exit_code <= 1, done.output
        seconds = time.process_time() - started
        saved = dynid.read_result(folder)
        fit, content = saved.identification(), dict(saved.content)
        findings = json.loads((Path(folder) / "run.json").read_text(encoding="utf-8"))["findings"]
        verdict, reason = explain_verdict(content["validation"], findings)
        loaders = check_loads(fit, Path(folder))
    return Done(fit=fit, content=content, seconds=seconds, verdict=verdict, reason=reason, loaders=loaders)


def explain_verdict(validation: dict[str, Any], findings: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """The verdict in a word or two, and its reason: the findings that forbid to pass, or else what the command says.

    Args:
        validation: Part of a result file.
        findings: Those of the run's record.
    """
    verdict, _, says = validation["verdict"].partition(": ")
    if validation["passed"]:
        return verdict, ""
    blamed = [f for f in findings if any(doubt.endswith(f["message"]) for doubt in validation["doubts"])]
    return verdict, "; ".join(f"`{f['code']}`, {f['where']}: {f['message']}" for f in blamed) or says


def check_loads(fit: Identification, folder: Path) -> str:
    """Say which simulators accept the written files; refuse an impossible body before.

    Pinocchio's models of the dynamics need no meshes. MuJoCo opens those that a URDF names; where they are not there,
    it gets the URDF without shapes.
    """
    for body in fit.identified.bodies:
        assert body.inertia.is_physical, f"{fit.robot.name}: body of {body.joint.name} is impossible"
    urdf, *_ = folder.glob("*_identified.urdf")
    of_urdf, of_mjcf = [], []
    if find_spec("pinocchio"):
        import pinocchio

        assert pinocchio.buildModelFromUrdf(str(urdf)).nv >= fit.robot.dof
        of_urdf.append("Pinocchio")
    if find_spec("mujoco"):
        import mujoco

        text = urdf.read_text(encoding="utf-8")
        bare = text if "<mesh" not in text else re.sub(r"<(visual|collision)\b.*?</\1>", "", text, flags=re.DOTALL)
        assert mujoco.MjModel.from_xml_string(bare).nv >= fit.robot.dof
        of_urdf.append("MuJoCo" if bare is text else "MuJoCo without its meshes")
        for path in folder.glob("*_identified*.xml"):
            assert mujoco.MjModel.from_xml_path(str(path)).nv >= fit.robot.dof
        of_mjcf.append("MuJoCo")
    return f"URDF: {', '.join(of_urdf)}; MJCF: {', '.join(of_mjcf)}"


TEXT = """
## Verdicts

What each command says of its result, the reason where it is not *passed*, and the simulators that accepted the robots
which it wrote: Pinocchio and MuJoCo the URDF, MuJoCo the MJCF, which has no meshes. The meshes of tx40, panda and ur10
(`package://` paths) are not with the logs. MuJoCo refuses their written URDFs for that, as it refuses the originals,
and gets them here without shapes (`<visual>`, `<collision>`); Pinocchio does not open meshes for the dynamics.
`python tests/campaigns/real_verdicts.py` writes this section alone.

"""


def log_name(data: DataSet, cutoff: float | None) -> str:
    """The name of a data set's row, with the evaluation cutoff where it has several."""
    return data.name + (f" {cutoff:g} Hz" if len(data.cutoffs_hz) > 1 and cutoff else "")


def verdict_section(rows: Sequence[tuple[str, str, str, str]]) -> str:
    """The section of the page: name of the log, verdict, reason and simulators of every command."""
    return TEXT + Table.of(["log", "verdict", "reason", "accepted by"], rows).to_markdown() + "\n"


def main() -> None:
    """Run every command and write the section anew."""
    rows = []
    for data in SETS:
        for cutoff in data.cutoffs_hz or (None,):
            done = run_command(words(data, cutoff))
            rows.append((log_name(data, cutoff), done.verdict, done.reason, done.loaders))
            print(*rows[-1], sep=" | ", flush=True)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition("\n## Verdicts\n")
    PAGE.write_text(before + verdict_section(rows) + rest[rest.index("\n## ") :], encoding="utf-8")


if __name__ == "__main__":
    main()
