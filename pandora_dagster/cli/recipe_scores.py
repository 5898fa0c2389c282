"""The command that scores recipes: what their calls say of the version in production, and of the one before it."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.opened import stored
from pandora_dagster.cli.output import EXIT_HALTED, note, say, say_json, say_table

if TYPE_CHECKING:
    from pandora_dagster.governance.regressions import Comparison


def register(recipes: typer.Typer) -> None:
    recipes.command("scores")(scores)


def scores(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A recipe; default: every recipe that ran.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Score recipes by their newest calls, and compare each with the version before it.

    Exit code 1 where a version is worse: by Fisher's exact test on each share, one-sided, 0.01 in all, from 20 calls on each side.

    Example: pandora recipes scores synthesizer_chat
    """
    from pandora_dagster.wiring.evaluating import open_evaluation
    from pandora_dagster.wiring.governing import open_governing

    with stored(context) as house:
        evaluation = open_evaluation(house)
        found = (evaluation.comparison(open_governing(house.settings).shelf.path_of(name)),) if name else evaluation.comparisons()
        rows = [(c, version, evaluation.window(house.cookbook.load(c.recipe).name, version).row()) for c in found for version in _both(c)]
    if as_json:
        say_json([{**asdict(c), "said": c.said, "figures": {v: row for one, v, row in rows if one is c}} for c in found])
    else:
        columns = ("calls", "passed", "first_time", "schema_valid", "citations_valid", "answered", "downstream", "calibration_error")
        shown = [(f"{c.recipe}@{version}", *(_figure(row[name]) for name in columns)) for c, version, row in rows]
        say_table(("Version", *(name.replace("_", " ") for name in columns)), shown)
        for one in found:
            (say if one.verdict == "worse" else note)(one.said)
    if any(one.verdict == "worse" for one in found):
        raise typer.Exit(EXIT_HALTED)


def _both(comparison: "Comparison") -> tuple[str, ...]:
    return tuple(version for version in (comparison.predecessor, comparison.version) if version)


def _figure(value: float | int | None) -> str:
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.2f}"
