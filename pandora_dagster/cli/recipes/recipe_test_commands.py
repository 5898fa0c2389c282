"""Commands that run recipes without storing turns: test, replay."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import app_of, settings_of
from pandora_dagster.cli.command_options import AsJson, RecipeName
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, exit_with, fields_of, print_json, print_line, print_note, print_table
from pandora_dagster.cli.recipes.recipe_score_commands import format_figure

if TYPE_CHECKING:
    from pandora_dagster.governance.call_replay import ReplayResult
    from pandora_dagster.governance.recipe_test_run import RecipeTestOutcome

Runtime = Annotated[str, typer.Option("--runtime", help="extractive, sglang or sglang-offline; default: as for `pandora`.")]


def test(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A recipe, or NAME@VERSION; default: every recipe in production.")] = "",
    runtime: Runtime = "",
    user: Annotated[str, typer.Option("--user", "-u", help="Also run the tests made of this user's calls.")] = "",
    junit: Annotated[Path | None, typer.Option("--junit", help="Write the results to this file as JUnit XML.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run the tests of recipes.

    A test fails if the call or a gate fails, an expectation is not met or a fact is missing; the exit code is then 1. Nothing is stored.

    Example: pandora recipes test reflection
    """
    from pandora_dagster.app.recipe_admin import open_recipe_admin, run_tests
    from pandora_dagster.governance.recipe_test_run import junit_xml

    settings = settings_of(context, runtime=runtime)
    outcomes = run_tests(settings, open_recipe_admin(settings), name, user=user)
    if junit:
        junit.write_text(junit_xml(outcomes), encoding="utf-8")
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if as_json:
        print_json([{**asdict(outcome), "passed": outcome.passed} for outcome in outcomes])
    else:
        _print_outcomes(outcomes)
    if not outcomes:
        exit_with(EXIT_WRONG, f"{name or 'recipes'}: no tests: expected a `tests:` block")
    if failed:
        raise typer.Exit(EXIT_HALTED)


def _print_outcomes(outcomes: "tuple[RecipeTestOutcome, ...]") -> None:
    for outcome in outcomes:
        for fault in outcome.faults:
            print_line(f"{outcome.recipe}@{outcome.version}: {outcome.test}: {fault}")
    failed = sum(not outcome.passed for outcome in outcomes)
    recipes = len({outcome.recipe for outcome in outcomes})
    print_note(f"{len(outcomes)} tests of {recipes} recipes{f', {failed} failed' if failed else ' passed'}")


def replay(
    context: typer.Context,
    name: RecipeName,
    before: Annotated[str, typer.Option("--from", help="Only calls of this version; default: all versions.")] = "",
    to: Annotated[str, typer.Option("--to", help="The version to run: digits of a hash, file or production.")] = "production",
    last: Annotated[int, typer.Option("--last", min=1, max=1_000_000, help="Number of newest calls.")] = 200,
    layer: Annotated[str, typer.Option(help="Model layer to use: REFLEX, NERVES, MIND, VOICE or EYES.")] = "",
    runtime: Runtime = "",
    as_json: AsJson = False,
) -> None:
    """Repeat logged calls and compare the answers.

    Use it to judge another version, layer or runtime before production. Nothing is stored.

    Example: pandora recipes replay reflection --from 3fd9c2 --to file --last 200
    """
    from pandora_dagster.app.recipe_admin import open_dry_run, open_recipe_admin
    from pandora_dagster.contracts.enums import ModelLayer
    from pandora_dagster.governance.call_replay import replay_calls
    from pandora_dagster.governance.promotion import resolve_version

    if layer and layer not in tuple(ModelLayer):
        exit_with(EXIT_WRONG, f"--layer {layer}: expected one of {', '.join(ModelLayer)}")
    settings = settings_of(context, runtime=runtime)
    admin = open_recipe_admin(settings)
    recipe = admin.recipes.path_of(name)
    version = resolve_version(admin.ctx, recipe, to)
    logged = resolve_version(admin.ctx, recipe, before).version if before else ""
    with app_of(context) as app:
        records = app.calls.newest(version.name, version=logged, limit=last)
        dry_run = open_dry_run(settings, admin.cookbook, admin.counter)
        try:
            dry_run.executor.select_version(version)
            chosen = ModelLayer(layer) if layer else None
            result = dry_run.run(replay_calls(records, dry_run.executor, app.vault.read, layer=chosen, at_once=dry_run.at_once))
        finally:
            dry_run.close()
    if as_json:
        print_json(_as_object(result, recipe, logged, version.version))
        return
    _print_result(result, logged or "as logged", version.version)
    if not result.calls:
        exit_with(EXIT_WRONG, f"{recipe}: no logged call could be repeated: expected calls of {logged or 'any version'} with stored inputs")


def _print_result(result: "ReplayResult", before: str, after: str) -> None:
    one, other = result.before.row(), result.after.row()
    layers = [", ".join(f"{layer} {count}" for layer, count in side.layers.items()) for side in (result.before, result.after)]
    figures = [(name.replace("_", " "), format_figure(one[name], 3), format_figure(other[name], 3)) for name in one]
    print_table(("", before, after), [*figures, ("answered by", *layers)])
    print_line(f"{result.same} of {result.calls} answers are the same")
    for name, count in result.changed.most_common():
        print_line(f"  {name}: different in {count}")
    for example in result.examples:
        print_line(f"\n{example.call_id} {example.turn} ({', '.join(example.fields)})\n- {example.before}\n+ {example.after}")
    for reason, count in result.left_out.items():
        print_note(f"{count} calls left out: {reason}")


def _as_object(result: "ReplayResult", recipe: str, before: str, after: str) -> dict[str, object]:
    return {
        "recipe": recipe,
        "from": before,
        "to": after,
        **fields_of(result, ("calls", "same", "changed", "left_out", "examples")),
        "before": {**result.before.row(), "layers": dict(result.before.layers)},
        "after": {**result.after.row(), "layers": dict(result.after.layers)},
    }
