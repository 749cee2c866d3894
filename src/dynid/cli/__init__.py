"""The command line: one sub-command per verb. The only folder that prints or exits.

Exit codes are in `dynid.cli.group`. Heavy imports happen inside the verbs, so that ``dynid --help`` is instant.
"""

from __future__ import annotations

import sys

try:
    import click

    from dynid.cli import codegen, compare, excite, identify, loads, logs, models, results, tools
    from dynid.cli.group import EXIT_CODES, ErrorGroup
except KeyboardInterrupt:  # before there is a command that could say so
    sys.stderr.write("dynid: interrupted. Nothing was begun.\n")
    sys.exit(130)

__all__ = ["main"]

EXAMPLES = """\b
Examples:
  dynid demo
  dynid base puma560
  dynid inspect run1.csv > map.toml
  dynid identify arm.urdf run1.csv --map map.toml --validate run2.csv --out result
  dynid validate result/ run9.csv --map map.toml"""


@click.group(
    cls=ErrorGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=f"{EXAMPLES}\n\n{EXIT_CODES}"
)
@click.version_option(package_name="dynid")
def main() -> None:
    """Identify the dynamics of robots: what can be known, and what it is.

    Robots are files (.urdf; .xml or .mjcf for MJCF; .txt for the text format) or built-in: see dynid robots.
    """


for command in (
    models.base,
    models.check,
    logs.inspect,
    excite.excite,
    identify.identify,
    logs.validate,
    loads.load,
    codegen.codegen,
    results.report,
    results.rerun,
    models.robots,
    compare.compare,
    tools.bench,
    tools.demo,
    tools.doctor,
    tools.reproduce,
    tools.completion,
):
    main.add_command(command)
