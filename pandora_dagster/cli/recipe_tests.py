"""Commands that try a recipe before it counts: its tests, and logged calls made again."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.opened import opened, settings_of
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, note, say, say_json, say_table, stop

if TYPE_CHECKING:
    from pandora_dagster.governance.replaying import Replayed
    from pandora_dagster.governance.testing import Outcome

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
    from pandora_dagster.governance.junit import junit_xml
    from pandora_dagster.wiring.governing import open_governing, tests_run

    settings = settings_of(context, runtime=runtime)
    outcomes = tests_run(settings, open_governing(settings), name, user=user)
    if junit:
        junit.write_text(junit_xml(outcomes), encoding="utf-8")
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if as_json:
        say_json([{**asdict(outcome), "passed": outcome.passed} for outcome in outcomes])
    else:
        _tell(outcomes)
    if not outcomes:
        stop(EXIT_WRONG, f"{name or 'the cookbook'}: no tests: expected a `tests:` block")
    if failed:
        raise typer.Exit(EXIT_HALTED)


def _tell(outcomes: "tuple[Outcome, ...]") -> None:
    for outcome in outcomes:
        for fault in outcome.faults:
            say(f"{outcome.recipe}@{outcome.version}: {outcome.test}: {fault}")
    failed = sum(not outcome.passed for outcome in outcomes)
    recipes = len({outcome.recipe for outcome in outcomes})
    note(f"{len(outcomes)} tests of {recipes} recipes, {failed} failed" if failed else f"{len(outcomes)} tests of {recipes} recipes passed")


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
    from pandora_dagster.contracts.words import ModelLayer
    from pandora_dagster.governance.promotion import resolved
    from pandora_dagster.governance.replaying import replayed
    from pandora_dagster.wiring.governing import open_governing
    from pandora_dagster.wiring.trying import open_trying

    if layer and layer not in tuple(ModelLayer):
        stop(EXIT_WRONG, f"--layer {layer}: expected one of {', '.join(ModelLayer)}")
    settings = settings_of(context, runtime=runtime)
    governing = open_governing(settings)
    recipe = governing.shelf.path_of(name)
    version = resolved(governing.desk, recipe, to)
    logged = resolved(governing.desk, recipe, before).version if before else ""
    with opened(context) as house:
        records = house.calls.newest(version.name, version=logged, limit=last)
        trying = open_trying(settings, governing.cookbook, governing.counter)
        try:
            trying.bench.on(version)
            chosen = ModelLayer(layer) if layer else None
            told = trying.run(replayed(records, trying.bench, house.vault.read, layer=chosen, at_once=trying.at_once))
        finally:
            trying.close()
    if as_json:
        say_json(_as_object(told, recipe, logged, version.version))
        return
    _show(told, logged or "as logged", version.version)
    if not told.calls:
        stop(EXIT_WRONG, f"{recipe}: no logged call could be made again: expected calls of {logged or 'any version'} with kept inputs")


def _show(told: "Replayed", before: str, after: str) -> None:
    one, other = told.before.row(), told.after.row()
    answered = (
        "answered by",
        *(", ".join(f"{layer} {count}" for layer, count in side.layers.items()) for side in (told.before, told.after)),
    )
    say_table(("", before, after), [(name.replace("_", " "), _figure(one[name]), _figure(other[name])) for name in one] + [answered])
    say(f"{told.same} of {told.calls} answers are the same")
    for name, count in told.changed.most_common():
        say(f"  {name}: another in {count}")
    for example in told.examples:
        say(f"\n{example.call_id} {example.turn} ({', '.join(example.fields)})\n- {example.before}\n+ {example.after}")
    for reason, count in told.left_out.items():
        note(f"{count} calls left out: {reason}")


def _figure(value: float | int | None) -> str:
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.3f}"


def _as_object(told: "Replayed", recipe: str, before: str, after: str) -> dict[str, object]:
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
