"""The command line: arguments, tables, JSON and exit codes. Commands import `app` and the packages below it when they run."""


def main() -> None:
    """Run `pandora`. Exit codes: 0 success; 1 a turn halted or a check failed; 2 a wrong command line, file or configuration."""
    from pandora_dagster.cli.program import run

    run()
