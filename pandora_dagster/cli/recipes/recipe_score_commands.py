"""Commands of the learning loop: what people correct, and what failures teach whoever edits a prompt."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import app_of_existing_store
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, exit_with, print_json, print_line, print_markdown, print_note, print_table

# The command that scores recipes: what their calls say of the version in production, and of the one before it.

if TYPE_CHECKING:
    from pandora_dagster.governance.call_metrics import CallMetrics


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
    from pandora_dagster.app.evaluation import open_evaluation
    from pandora_dagster.app.recipe_admin import open_recipe_admin

    with app_of_existing_store(context) as app:
        evaluation = open_evaluation(app)
        found = (evaluation.comparison(open_recipe_admin(app.settings).recipes.path_of(name)),) if name else evaluation.comparisons()
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


def register_lessons(app: typer.Typer, recipes: typer.Typer) -> None:
    app.command("correct")(correct)
    recipes.command("lessons")(lessons)


def correct(
    context: typer.Context,
    turn: Annotated[str, typer.Argument(help="<user>:turn_000811, or the short form where it is unique.")],
    said: Annotated[str, typer.Argument(help="What was wrong, or what it should have been.")],
    phase: Annotated[str, typer.Option("--phase", help="The phase that was wrong; default: the answer.")] = "response",
    recipe: Annotated[str, typer.Option("--recipe", help="Whose words were wrong, where several recipes ran in the phase.")] = "",
) -> None:
    """Say what was wrong with a turn.

    It is put down to the recipe that wrote it: scorecards count it, and `pandora recipes lessons` tells it. The turn stays as it is.

    Example: pandora correct example:turn_000012 "the desk cost 429 euros, not 389"
    """
    from pandora_dagster.app.evaluation import open_corrections
    from pandora_dagster.governance.correction_attribution import attribute_correction as corrected

    with app_of_existing_store(context) as app:
        key = app.turns.resolve(turn)
        manifest = app.turns.manifest(key)
        calls = [call for number in range(manifest.revision + 1) for call in app.calls.of_turn(key, number)]
        made = corrected(key, manifest, said, open_corrections(app), phase=phase, recipe=recipe, calls=calls)
    print_line(f"{made.id}: noted for {made.recipe}@{made.recipe_version}")


def lessons(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="{category}/{name}, or short: reflection.")],
    last: Annotated[int, typer.Option("--last", min=1, max=1_000_000, help="How many of the newest calls are looked at.")] = 1_000,
    to_tests: Annotated[
        list[str] | None, typer.Option("--to-tests", help="A call that becomes a test of the recipe; again for more.")
    ] = None,
    fact: Annotated[list[str] | None, typer.Option("--fact", help="What the answer of such a test must say.")] = None,
    lacks: Annotated[list[str] | None, typer.Option("--lacks", help="What the answer of such a test must not say.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Tell what went wrong with a recipe's calls, as a brief for whoever edits its prompt.

    With --to-tests, chosen calls become tests: they pass the recipe's gates, and say or lack what you name. They lie with their person and
    are erased with them; `pandora recipes test NAME --user USER` runs them.

    Example: pandora recipes lessons synthesizer_chat --to-tests call_4f1a --fact "429.00 euros"
    """
    from pandora_dagster.app.evaluation import make_tests, open_evaluation
    from pandora_dagster.app.recipe_admin import open_recipe_admin
    from pandora_dagster.governance.recipe_failures import failure_brief

    if (fact or lacks) and not to_tests:
        exit_with(EXIT_WRONG, "--fact and --lacks say what a test expects: expected --to-tests with a call")
    with app_of_existing_store(context) as app:
        recipe = open_recipe_admin(app.settings).recipes.path_of(name)
        if to_tests:
            for path in make_tests(app, recipe, to_tests, facts=fact or (), lacks=lacks or (), last=last):
                print_line(path)
            return
        groups = open_evaluation(app).lessons(app.cookbook.load(recipe).name, last=last)
    if as_json:
        print_json([json.loads(json.dumps(asdict(group))) for group in groups])
        return
    print_markdown(failure_brief(recipe, groups))
    if groups:
        print_note(f"a call becomes a test with: pandora recipes lessons {recipe} --to-tests CALL --fact TEXT")
