"""Commands that learn from calls: scores, corrections, failures of recipes."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import app_of_existing_store
from pandora_dagster.cli.command_options import AsJson, RecipeName, Turn
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, exit_with, print_json, print_line, print_markdown, print_note, print_table

if TYPE_CHECKING:
    from pandora_dagster.governance.call_metrics import CallMetrics
    from pandora_dagster.governance.regressions import VersionComparison

_COLUMNS = ("calls", "passed", "first_time", "schema_valid", "citations_valid", "answered", "downstream", "calibration_error")


def scores(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A recipe; default: every recipe with calls.")] = "",
    as_json: AsJson = False,
) -> None:
    """Score recipes by their newest calls.

    Each is compared with the version and layer before. The exit code is 1 if one is worse: Fisher's exact test, one-sided, at 0.01 for each
    recipe divided among its shares, with at least 20 calls on each side.

    Example: pandora recipes scores synthesizer_chat
    """
    from pandora_dagster.app.evaluation import open_evaluation
    from pandora_dagster.app.recipe_admin import open_recipe_admin

    with app_of_existing_store(context) as app:
        evaluation = open_evaluation(app)
        found = (evaluation.comparison(open_recipe_admin(app.settings).recipes.path_of(name)),) if name else evaluation.comparisons()
        figures = {one.recipe: evaluation.production_figures(one.recipe) for one in found}
    if as_json:
        print_json(
            [
                {
                    **asdict(c),
                    "said": c.summary,
                    "figures": {v: {**m.row(), "failed_gates": dict(m.gate_failures)} for v, m in figures[c.recipe].items()},
                }
                for c in found
            ]
        )
    else:
        _print_scores(found, [(f"{c.recipe}@{version}", m) for c in found for version, m in reversed(figures[c.recipe].items())])
    if any(one.verdict == "worse" for one in found):
        raise typer.Exit(EXIT_HALTED)


def _print_scores(found: "Sequence[VersionComparison]", rows: "Sequence[tuple[str, CallMetrics]]") -> None:
    cells = [(name, *(format_figure(metrics.row()[column]) for column in _COLUMNS)) for name, metrics in rows]
    print_table(("Version", *(name.replace("_", " ") for name in _COLUMNS)), cells)
    for name, metrics in rows:
        if metrics.gate_failures:
            print_line(f"{name}: failed gates: {metrics.failed_gates}")
    for one in found:
        (print_line if one.verdict == "worse" else print_note)(one.summary)


def format_figure(value: float | int | None, digits: int = 2) -> str:
    """A count as it is, a share with `digits` decimals; empty for None."""
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.{digits}f}"


def correct(
    context: typer.Context,
    turn: Turn,
    correction: Annotated[str, typer.Argument(help="What was wrong, or what it should have been.")],
    phase: Annotated[str, typer.Option("--phase", help="The phase that was wrong; default: the answer.")] = "response",
    recipe: Annotated[str, typer.Option("--recipe", help="The recipe that was wrong, if several ran in the phase.")] = "",
) -> None:
    """Store a correction of a turn.

    It counts in the scores of the recipe that wrote the text, and `pandora recipes lessons` shows it. The turn does not change.

    Example: pandora correct example:turn_000012 "the desk cost 429 euros, not 389"
    """
    from pandora_dagster.app.evaluation import open_corrections
    from pandora_dagster.governance.turn_outcomes import attribute_correction

    with app_of_existing_store(context) as app:
        key = app.turns.resolve(turn)
        manifest = app.turns.manifest(key)
        calls = [call for number in range(manifest.revision + 1) for call in app.calls.of_turn(key, number)]
        made = attribute_correction(key, manifest, correction, open_corrections(app), phase=phase, recipe=recipe, calls=calls)
    print_line(f"{made.id}: noted for {made.recipe}@{made.recipe_version}")


def lessons(
    context: typer.Context,
    name: RecipeName,
    last: Annotated[int, typer.Option("--last", min=1, max=1_000_000, help="Number of newest calls to read.")] = 1_000,
    to_tests: Annotated[list[str] | None, typer.Option("--to-tests", help="A call to make a test of; may be repeated.")] = None,
    fact: Annotated[list[str] | None, typer.Option("--fact", help="A text that the answer of the test must contain.")] = None,
    lacks: Annotated[list[str] | None, typer.Option("--lacks", help="A text that the answer of the test must not contain.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the failures of a recipe, to improve its prompt.

    --to-tests makes tests of calls: they must pass the gates of the recipe, and contain or lack the texts that you name. Tests are stored
    with their user and erased with the user; `pandora recipes test NAME --user USER` runs them.

    Example: pandora recipes lessons synthesizer_chat --to-tests call_4f1a --fact "429.00 euros"
    """
    from pandora_dagster.app.evaluation import make_tests, open_evaluation
    from pandora_dagster.app.recipe_admin import open_recipe_admin
    from pandora_dagster.governance.recipe_failures import failure_brief

    if (fact or lacks) and not to_tests:
        exit_with(EXIT_WRONG, "--fact and --lacks describe a test: expected --to-tests with a call")
    with app_of_existing_store(context) as app:
        recipe = open_recipe_admin(app.settings).recipes.path_of(name)
        if to_tests:
            for path in make_tests(app, recipe, to_tests, facts=fact or (), lacks=lacks or (), last=last):
                print_line(path)
            return
        groups = open_evaluation(app).lessons(app.cookbook.load(recipe).name, last=last)
    if as_json:
        print_json(groups)
        return
    print_markdown(failure_brief(recipe, groups))
    if groups:
        print_note(f"make a test of a call with: pandora recipes lessons {recipe} --to-tests CALL --fact TEXT")
