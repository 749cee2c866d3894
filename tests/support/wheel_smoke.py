"""Every group of commands once, with the dynid that this interpreter has installed; prints one JSON object.

Usage: ``python wheel_smoke.py FOLDER [GROUP ...]``. The folder is the working directory and gets all files. Nothing of
the checkout is used, so that a wheel in a clean environment is what is tried. `GROUPS` names the groups.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

JOINTS = 3
QUICK = ("doctor", "base", "inspect", "identify", "codegen")
"""The groups of a quick look."""


def dynid(*words: str, codes: tuple[int, ...] = (0,)) -> str:
    """Run a command; returns what it printed, or raises with its last words."""
    done = subprocess.run([sys.executable, "-m", "dynid", *words], capture_output=True, text=True, check=False)
    if done.returncode not in codes or "Traceback" in done.stderr:
        raise RuntimeError(f"dynid {words[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-600:]}")
    return done.stdout


def _bodies(robot: Any, body: Any) -> Any:
    """The robot with the same body as every moving link, and friction of 1 N m s/rad and 1 N m."""
    import numpy as np

    return robot.with_parameters(np.concatenate([np.tile(body.vector, robot.dof), np.ones(2 * robot.dof)]))


def write_inputs() -> None:
    """A small arm as URDF, three logs of it as text, and one with a load."""
    import numpy as np

    import dynid as d
    from dynid.processing.simulation import sum_of_sines

    body = d.Inertia.from_com(3.0, [0.2, 0.0, 0.05], np.diag([0.02, 0.05, 0.05]))
    arm = [d.DH(r=0.3), d.DH(alpha=np.pi / 2), d.DH(d=0.5)]
    robot = _bodies(d.from_dh(arm, name="arm").with_terms(d.Viscous(), d.Coulomb()), body)
    d.write_urdf(robot.with_parameters(1.2 * robot.parameter_vector), "arm.urdf", force=True)  # as data sheets are
    held = d.Inertia.from_com(2.0, [0.05, 0.0, 0.1], 0.01 * np.eye(3))
    loaded = robot.with_body("object", parent=robot.bodies[-1].joint.child, inertia=held)
    for k, (name, arm) in enumerate((("run1", robot), ("run2", robot), ("held", loaded))):
        log = d.simulate_experiment(arm, sum_of_sines(JOINTS, seed=k), rate_hz=200, duration_s=8,
                                    noise=d.Noise(position=1e-6, effort=0.1), seed=k)  # fmt: skip
        names = ["time", *(f"{joint}_{part}" for part in ("pos", "torque") for joint in robot.joint_names)]
        values = np.column_stack([log.time, log.q, log.effort])
        np.savetxt(f"{name}.csv", values, delimiter=",", header=",".join(names), comments="", fmt="%.12g")


def doctor() -> None:
    """Versions and a compiled kernel, and the list of robots."""
    assert "kernels run by" in dynid("doctor")
    assert "puma560" in dynid("robots")


def base() -> None:
    """Base parameters of a built-in and of a written robot."""
    assert "36" in dynid("base", "puma560")
    dynid("base", "arm.urdf")
    dynid("check", "arm.urdf", codes=(0, 1))


def inspect() -> None:
    """A channel map that the other groups read by."""
    Path("map.toml").write_text(dynid("inspect", "run1.csv", "--robot", "arm.urdf"), encoding="utf-8")
    dynid("check", "run1.csv", "--map", "map.toml", "--robot", "arm.urdf", codes=(0, 1))


def identify() -> None:
    """A run folder, validated, and its report written again."""
    dynid("identify", "arm.urdf", "run1.csv", "--map", "map.toml", "--hold-out", "30%", "--out", "result", "--force")
    dynid("validate", "result", "run2.csv", "--map", "map.toml")
    dynid("report", "result")


def load() -> None:
    """The load from joint torques."""
    dynid("load", "arm.urdf", "held.csv", "--unloaded", "run1.csv", "--map", "map.toml", "--out", "load", "--force",
          codes=(0, 1))  # fmt: skip


def fleet() -> None:
    """Two arms by a pool of processes and, where the extra is installed, by a Dask cluster: the same numbers."""
    for arm, log in (("one", "run1"), ("two", "run2")):
        Path("logs", arm).mkdir(parents=True, exist_ok=True)
        shutil.copy(f"{log}.csv", Path("logs", arm))
    engines = ["local", "processes", *(["dask"] if find_spec("distributed") else [])]
    shown = [
        dynid("fleet", "arm.urdf", "logs/{arm}/*.csv", "--map", "map.toml", "--engine", engine, "--out", engine,
              "--force", codes=(0, 1)).replace(engine, "")
        for engine in engines
    ]  # fmt: skip
    assert len(set(shown)) == 1, "engines printed different numbers"


def excite() -> None:
    """A designed motion."""
    dynid("excite", "ur10", "--time-limit", "2", "--acceleration", "10", "--out", "plan", "--force")


def codegen() -> None:
    """C code of the identified robot."""
    dynid("codegen", "result", "--out", "code", "--force")


def demo() -> None:
    """The demonstration twice: the same numbers."""
    shown = [_numbers(dynid("demo", "--out", f"demo{k}", "--force")) for k in (1, 2)]
    assert shown[0] == shown[1], "two demonstrations with one seed printed different numbers"
    Path("demo.txt").write_text(shown[0], encoding="utf-8")


def _numbers(text: str) -> str:
    """What the demonstration printed, without folders and times."""
    lines = [line for line in text.splitlines() if not re.match(r"Files|Report|The demonstration took", line)]
    return "\n".join(lines)


GROUPS: dict[str, Callable[[], None]] = {
    "doctor": doctor, "base": base, "inspect": inspect, "identify": identify, "load": load, "excite": excite,
    "codegen": codegen, "fleet": fleet, "demo": demo,
}  # fmt: skip
"""Group -> the function that tries it; later ones use the files of earlier ones."""


def main() -> int:
    """Try the groups; the exit code is 1 if one fails."""
    folder, chosen = Path(sys.argv[1]), sys.argv[2:] or list(GROUPS)
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    results = {}
    write_inputs()
    for name in chosen:
        begun = time.perf_counter()
        try:
            GROUPS[name]()
            error = None
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
        results[name] = {"ok": error is None, "seconds": time.perf_counter() - begun, "error": error}
    sys.stdout.write(json.dumps(results) + "\n")
    return 0 if all(result["ok"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
