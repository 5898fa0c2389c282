"""The command that scores recipes: what their calls say of the version in production, and of the one before it."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.opened import stored
from pandora_dagster.cli.output import EXIT_HALTED, note, say, say_json, say_table

if TYPE_CHECKING:
    from pandora_dagster.governance.figures import Figures


def register(recipes: typer.Typer) -> None:
    recipes.command("scores")(scores)


def scores(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A recipe; default: every recipe that ran.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Score recipes by their newest calls, and compare each with the version and layer before.

    Exit code 1 where one is worse: by Fisher's exact test, one-sided, at 0.01 for each recipe divided among its shares, from 20 calls on
    each side.

    Example: pandora recipes scores synthesizer_chat
    """
    from pandora_dagster.wiring.evaluating import open_evaluation
    from pandora_dagster.wiring.governing import open_governing

    with stored(context) as house:
        evaluation = open_evaluation(house)
        found = (evaluation.comparison(open_governing(house.settings).shelf.path_of(name)),) if name else evaluation.comparisons()
        sides = {one.recipe: evaluation.sides(one.recipe) for one in found}
    if as_json:
        say_json([{**asdict(c), "said": c.said, "figures": {v: _figures(one) for v, one in sides[c.recipe].items()}} for c in found])
    else:
        columns = ("calls", "passed", "first_time", "schema_valid", "citations_valid", "answered", "downstream", "calibration_error")
        rows = [(f"{c.recipe}@{version}", one) for c in found for version, one in reversed(sides[c.recipe].items())]
        shown = [(name, *(_figure(one.row()[column]) for column in columns)) for name, one in rows]
        say_table(("Version", *(name.replace("_", " ") for name in columns)), shown)
        for name, one in rows:
            if one.gate_failures:
                say(f"{name}: failed gates: {one.failed_gates}")
        for one in found:
            (say if one.verdict == "worse" else note)(one.said)
    if any(one.verdict == "worse" for one in found):
        raise typer.Exit(EXIT_HALTED)


def _figures(one: "Figures") -> dict[str, object]:
    return {**one.row(), "failed_gates": dict(one.gate_failures)}


def _figure(value: float | int | None) -> str:
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.2f}"
