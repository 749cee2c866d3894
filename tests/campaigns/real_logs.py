"""The real logs of the shared data sets with their robots, as a user would describe them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import dynid
from dynid.logs.reading import read_recording
from dynid.logs.recording import Recording
from dynid.robot.model import Robot

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("DYNID_DATASETS", ROOT.parent / "shared" / "datasets"))
PLAIN = (dynid.RotorInertia(), dynid.Viscous(), dynid.Coulomb(), dynid.Offset())


@dataclass(frozen=True)
class DataSet:
    """Logs and their robot."""

    name: str
    robot: Callable[[], Robot]
    files: tuple[str, ...] = ()

    def recordings(self, robot: Robot) -> list[Recording]:
        """Read the logs with the channel map of the data set."""
        known = robot if self.name != "panda_unisa" else None  # that log's joint names carry another prefix
        folder = DATA / self.name
        paths = [folder / file for file in self.files] or [folder]
        return [read_recording(path, known, channel_map=ROOT / "channel_maps" / f"{self.name}.toml") for path in paths]


def tx40() -> Robot:
    """Staubli TX40 with its coupled wrist."""
    robot = dynid.read_urdf(DATA / "tx40" / "tx40_mdh_modified.urdf")
    last = robot.joint_names[-2:]
    return robot.with_terms(*PLAIN, dynid.terms.Coupling({last[0]: 1.0, last[1]: 1.0}))


def panda(folder: str) -> Robot:
    """Franka Panda, fingers held."""
    path = DATA / folder / "panda.urdf"
    fingers = re.findall(r'<joint[^>]*name="([^"]*finger[^"]*)"', path.read_text())
    return dynid.read_urdf(path, hold=dict.fromkeys(fingers, 0.0)).with_terms(*PLAIN)


def ur10() -> Robot:
    """Universal Robots UR10."""
    return dynid.read_urdf(DATA / "ur10_unisa" / "ur10_robot.urdf").with_terms(*PLAIN)


def kuka() -> Robot:
    """KUKA KR300; its masses are rough guesses for a robot of 1.1 t, because no model of it is published."""
    return dynid.read_mjcf(ROOT / "robots" / "kuka_kr300.xml").with_terms(*PLAIN)


def yumi() -> Robot:
    """One arm of ABB's YuMi on its tilted base; masses are guesses for an arm of about 9 kg."""
    return dynid.read_mjcf(ROOT / "robots" / "yumi.xml").with_terms(*PLAIN[1:])


SETS = (
    DataSet("tx40", tx40),
    DataSet("panda_gaz", lambda: panda("panda_gaz")),
    DataSet("panda_unisa", lambda: panda("panda_unisa")),
    DataSet("ur10_unisa", ur10),
    DataSet("kuka_kr300", kuka, ("rec_FF_A.mat", "rec_FF_B.mat", "rec_FF_C.mat")),
    DataSet("yumi_ft", yumi, ("gravitylog.mat",)),
)
