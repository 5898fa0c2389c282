"""The command line: arguments, tables, JSON and exit codes. Commands import `app` and the packages below it when they run."""

import gc

_NEW_OBJECTS = 50_000
"""New objects after which the garbage collector looks for cycles: a command's modules are as many, and hold no garbage."""


def main() -> None:
    """Run `pandora`. Exit codes: 0 success; 1 a turn halted or a check failed; 2 a wrong command line, file or configuration."""
    gc.set_threshold(_NEW_OBJECTS, 20, 100)
    from pandora_dagster.cli.program import run

    run()
