"""The command line: arguments, tables, JSON and exit codes. The work is done by `app` and below, imported when a command runs."""


def main() -> None:
    """Run `pandora`. Exit codes: 0 success; 1 a turn halted or a check failed; 2 a wrong command line, file or configuration."""
    from pandora_dagster.cli.program import run

    run()
