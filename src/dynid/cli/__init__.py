"""The command line: one sub-command per verb. The only folder that prints or exits.

Exit codes: 0 good, 1 the verdict failed, 2 wrong usage, 3 bad robot description or data, 4 not identifiable, 5 no
answer found or nothing could be written, 130 interrupted. Heavy imports happen inside the verbs, so that
``dynid --help`` is instant.
"""

from __future__ import annotations

import click

from dynid.cli import loads, logs, models, tools
from dynid.cli.common import ErrorGroup

__all__ = ["main"]


@click.group(cls=ErrorGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dynid")
def main() -> None:
    """Identify the dynamics of robots: what can be known, and what it is.

    Robots are files (.urdf; .xml or .mjcf for MJCF; .txt for the text format) or built-in: see dynid robots.
    """


for command in (
    models.base,
    models.check,
    logs.inspect,
    models.excite,
    logs.identify,
    loads.load,
    models.codegen,
    models.robots,
    tools.bench,
    tools.demo,
    tools.doctor,
    tools.reproduce,
):
    main.add_command(command)
