"""Commands about dynid itself: demo, doctor."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click
from click import option

from dynid.cli.options import FORCE, JSON, command, refuse_run
from dynid.cli.screen import echo, print_json


@command(
    option("--out", type=click.Path(path_type=Path), default=Path("out/demo"), show_default=True,
           help="Folder for the results."),
    FORCE, JSON,
    examples=["dynid demo", "dynid demo --out out/again"],
)  # fmt: skip
def demo(out: Path, force: bool, as_json: bool) -> None:
    """Run the whole workflow on a simulated arm.

    The true parameters are known. The exit code is 1 if the result fails its validation.
    """
    from dynid.cli.demo import run_demo

    refuse_run(out, "the demo")
    run, text = run_demo(out, lambda line: echo(f"- {line}", err=as_json), force=force)
    if as_json:
        print_json(run.to_json())
    else:
        echo(f"\n{text}")
    sys.exit(run.exit_code)


@command(JSON, examples=["dynid doctor --json"])
def doctor(as_json: bool) -> None:
    """Show the versions of dynid, its packages and compilers."""
    from dynid import __version__
    from dynid.compiled import kernel
    from dynid.export.c.c_check import find_compiler
    from dynid.robot.zoo import puma560

    packages: dict[str, str | None] = {}
    optional = ("h5py", "pyarrow", "mcap", "mujoco", "casadi")
    for name in ("numpy", "scipy", "llvmlite", "clarabel", *optional):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    example = kernel(puma560(), "inverse_dynamics")
    compiler = find_compiler()
    if as_json:
        machine = {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}
        facts = {"dynid": __version__, **machine, "packages": packages, "kernels": example.program.backend}
        print_json({**facts, "c_compiler": None if compiler is None else str(compiler)})
        return
    echo(f"dynid {__version__}, Python {platform.python_version()}, {platform.machine()} {platform.system()}")
    for name, found_version in packages.items():
        echo(f"  {name:12s} {found_version or 'not installed'}")
    echo(f"kernels run by {example.program.backend}: PUMA 560 inverse dynamics in {example.count}")
    echo(f"C compiler: {compiler or 'none (only needed to verify generated code)'}")
