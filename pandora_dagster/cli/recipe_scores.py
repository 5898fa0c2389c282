"""The command that scores recipes: what their calls say of the version in production, and of the one before it."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.opened import app_of_existing_store
from pandora_dagster.cli.output import EXIT_HALTED, print_note, print_line, print_json, print_table

if TYPE_CHECKING:
    from pandora_dagster.governance.figures import CallMetrics


def register_scores(recipes: typer.Typer) -> None:
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
    from pandora_dagster.wiring.governing import open_recipe_admin

    with app_of_existing_store(context) as app:
        evaluation = open_evaluation(app)
        found = (evaluation.comparison(open_recipe_admin(app.settings).shelf.path_of(name)),) if name else evaluation.comparisons()
        sides = {one.recipe: evaluation.production_figures(one.recipe) for one in found}
    if as_json:
        print_json([{**asdict(c), "said": c.summary, "figures": {v: _figures(one) for v, one in sides[c.recipe].items()}} for c in found])
    else:
        columns = ("calls", "passed", "first_time", "schema_valid", "citations_valid", "answered", "downstream", "calibration_error")
        rows = [(f"{c.recipe}@{version}", one) for c in found for version, one in reversed(sides[c.recipe].items())]
        shown = [(name, *(_figure(one.row()[column]) for column in columns)) for name, one in rows]
        print_table(("Version", *(name.replace("_", " ") for name in columns)), shown)
        for name, one in rows:
            if one.gate_failures:
                print_line(f"{name}: failed gates: {one.failed_gates}")
        for one in found:
            (print_line if one.verdict == "worse" else print_note)(one.summary)
    if any(one.verdict == "worse" for one in found):
        raise typer.Exit(EXIT_HALTED)


def _figures(one: "CallMetrics") -> dict[str, object]:
    return {**one.row(), "failed_gates": dict(one.gate_failures)}


def _figure(value: float | int | None) -> str:
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.2f}"
