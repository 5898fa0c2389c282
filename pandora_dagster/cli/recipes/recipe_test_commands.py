"""Commands that try a recipe before it counts: its tests, and logged calls made again."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import app_of, settings_of
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, exit_with, print_json, print_line, print_note, print_table

if TYPE_CHECKING:
    from pandora_dagster.governance.call_replay import ReplayResult
    from pandora_dagster.governance.recipe_test_run import RecipeTestOutcome

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Runtime = Annotated[str, typer.Option("--runtime", help="extractive, sglang or sglang-offline; default: as before the command.")]


def register(recipes: typer.Typer) -> None:
    recipes.command("test")(test)
    recipes.command("replay")(replay)


def test(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A recipe, or NAME@VERSION; default: every recipe as it is in production.")] = "",
    runtime: Runtime = "",
    user: Annotated[str, typer.Option("--user", "-u", help="Also the tests made of this person's calls.")] = "",
    junit: Annotated[Path | None, typer.Option("--junit", help="Write the outcome here, as JUnit XML.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run the tests that recipes carry. Exit code 1 where one fails.

    A test fails where the call fails, a gate does not pass, an expectation does not hold or a fact is gone. Nothing is stored.

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
        exit_with(EXIT_WRONG, f"{name or 'the cookbook'}: no tests: expected a `tests:` block")
    if failed:
        raise typer.Exit(EXIT_HALTED)


def _print_outcomes(outcomes: "tuple[RecipeTestOutcome, ...]") -> None:
    for outcome in outcomes:
        for fault in outcome.faults:
            print_line(f"{outcome.recipe}@{outcome.version}: {outcome.test}: {fault}")
    failed = sum(not outcome.passed for outcome in outcomes)
    recipes = len({outcome.recipe for outcome in outcomes})
    print_note(
        f"{len(outcomes)} tests of {recipes} recipes, {failed} failed" if failed else f"{len(outcomes)} tests of {recipes} recipes passed"
    )


def replay(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="{category}/{name}, or short: reflection.")],
    before: Annotated[str, typer.Option("--from", help="Only calls that ran on this version; default: all of the recipe.")] = "",
    to: Annotated[str, typer.Option("--to", help="The version to run: digits of a hash, file or production.")] = "production",
    last: Annotated[int, typer.Option("--last", min=1, max=1_000_000, help="How many of the newest calls.")] = 200,
    layer: Annotated[str, typer.Option(help="Another model layer: REFLEX, NERVES, MIND, VOICE or EYES.")] = "",
    runtime: Runtime = "",
    as_json: AsJson = False,
) -> None:
    """Make logged calls again, and put what comes out beside what was logged.

    On another version, layer or runtime; nothing of it is stored. This is how a change is judged before it counts.

    Example: pandora recipes replay reflection --from 3fd9c2 --to file --last 200
    """
    from pandora_dagster.app.recipe_admin import open_dry_run, open_recipe_admin
    from pandora_dagster.contracts.enums import ModelLayer
    from pandora_dagster.governance.call_replay import replay_calls
    from pandora_dagster.governance.promotion import resolve_version

    if layer and layer not in tuple(ModelLayer):
        exit_with(EXIT_WRONG, f"--layer {layer}: expected one of {', '.join(ModelLayer)}")
    settings = settings_of(context, runtime=runtime)
    governing = open_recipe_admin(settings)
    recipe = governing.recipes.path_of(name)
    version = resolve_version(governing.ctx, recipe, to)
    logged = resolve_version(governing.ctx, recipe, before).version if before else ""
    with app_of(context) as app:
        records = app.calls.newest(version.name, version=logged, limit=last)
        trying = open_dry_run(settings, governing.cookbook, governing.counter)
        try:
            trying.executor.select_version(version)
            chosen = ModelLayer(layer) if layer else None
            told = trying.run(replay_calls(records, trying.executor, app.vault.read, layer=chosen, at_once=trying.at_once))
        finally:
            trying.close()
    if as_json:
        print_json(_as_object(told, recipe, logged, version.version))
        return
    _show(told, logged or "as logged", version.version)
    if not told.calls:
        exit_with(EXIT_WRONG, f"{recipe}: no logged call could be made again: expected calls of {logged or 'any version'} with kept inputs")


def _show(told: "ReplayResult", before: str, after: str) -> None:
    one, other = told.before.row(), told.after.row()
    answered = (
        "answered by",
        *(", ".join(f"{layer} {count}" for layer, count in side.layers.items()) for side in (told.before, told.after)),
    )
    print_table(("", before, after), [(name.replace("_", " "), _figure(one[name]), _figure(other[name])) for name in one] + [answered])
    print_line(f"{told.same} of {told.calls} answers are the same")
    for name, count in told.changed.most_common():
        print_line(f"  {name}: another in {count}")
    for example in told.examples:
        print_line(f"\n{example.call_id} {example.turn} ({', '.join(example.fields)})\n- {example.before}\n+ {example.after}")
    for reason, count in told.left_out.items():
        print_note(f"{count} calls left out: {reason}")


def _figure(value: float | int | None) -> str:
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.3f}"


def _as_object(told: "ReplayResult", recipe: str, before: str, after: str) -> dict[str, object]:
    return {
        "recipe": recipe,
        "from": before,
        "to": after,
        "calls": told.calls,
        "same": told.same,
        "before": {**told.before.row(), "layers": dict(told.before.layers)},
        "after": {**told.after.row(), "layers": dict(told.after.layers)},
        "changed": dict(told.changed),
        "left_out": dict(told.left_out),
        "examples": [json.loads(json.dumps(asdict(example))) for example in told.examples],
    }
