"""Verbs about dynid itself: demo, doctor, bench, reproduce."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from dynid.cli.common import progress

__all__ = ["bench", "demo", "doctor", "reproduce"]


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/demo"), show_default=True, help="Folder.")
@click.option("--seed", default=0, show_default=True, help="Of everything random.")
def demo(out: Path, seed: int) -> None:
    """Run the whole job on a built-in arm with planted truth; exit code 1 if the result does not prove itself."""
    from dynid.demo import run_demo

    result = run_demo(out, lambda line: click.echo(f"- {line}"), seed=seed)
    click.echo("")
    click.echo(result.text())
    sys.exit(0 if result.passed else 1)


@click.command()
def doctor() -> None:
    """Say what this installation has: versions, the compiler of kernels, optional packages."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from dynid import __version__
    from dynid.kernels import kernel
    from dynid.robot.zoo import puma560

    click.echo(f"dynid {__version__}, Python {platform.python_version()}, {platform.machine()} {platform.system()}")
    for name in ("numpy", "scipy", "llvmlite", "clarabel", "h5py", "pyarrow", "mcap", "mujoco", "matplotlib"):
        try:
            click.echo(f"  {name:12s} {version(name)}")
        except PackageNotFoundError:
            click.echo(f"  {name:12s} not installed")
    made = kernel(puma560(), "inverse_dynamics")
    click.echo(f"kernels run by {made.program.backend}: PUMA 560 inverse dynamics in {made.count}")


@click.command()
@click.option("--json", "path", type=click.Path(dir_okay=False), help="Also write the table as JSON.")
def bench(path: str | None) -> None:
    """Print our speed beside the peers' that are installed, as ratios measured in one run."""
    # a process of its own: the number of threads of numerical libraries is fixed when they are loaded
    options = ["--json", path] if path else []
    sys.exit(subprocess.run([sys.executable, "-m", "dynid.benchmark", *options], check=False).returncode)


@click.command()
@click.argument("paper", default="all")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/papers"), show_default=True, help="Folder.")
@click.option("--quick", is_flag=True, help="Fewer random draws, for a first look.")
def reproduce(paper: str, out: Path, quick: bool) -> None:
    """Regenerate tables and figures of the papers dynid is built from, with a verdict for every row.

    PAPER is gautier1990, lin1995, gautier1992, izaguirre1992, atkeson1986 or all.

    Example: dynid reproduce gautier1990 --out papers
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # many small problems: threads only get in each other's way

    from dynid.papers.registry import reproduce as regenerate

    with progress("reproducing", 1.0) as advance:
        result = regenerate(paper, out, lambda done, total, title: advance(done / total, title), quick=quick)
    click.echo(result.summary())
    click.echo(f"written: {out}")
