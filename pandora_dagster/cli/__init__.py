"""The command line. Knows words, tables and exit codes; what is done is done elsewhere, and imported when it is needed."""


def main() -> None:
    """Run `pandora`. Exit codes: 0 done; 1 halted or a check failed; 2 the command line, a file or the configuration is wrong."""
    from pandora_dagster.cli.program import run

    run()
