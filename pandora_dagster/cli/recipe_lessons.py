"""Commands of the learning loop: what people correct, and what failures teach whoever edits a prompt."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from pandora_dagster.cli.opened import stored
from pandora_dagster.cli.output import EXIT_WRONG, note, say, say_json, say_markdown, stop


def register(app: typer.Typer, recipes: typer.Typer) -> None:
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
    from pandora_dagster.governance.correcting import correct as corrected
    from pandora_dagster.wiring.evaluating import open_corrections

    with stored(context) as house:
        key = house.turns.resolve(turn)
        manifest = house.turns.manifest(key)
        calls = [call for number in range(manifest.revision + 1) for call in house.calls.of_turn(key, number)]
        made = corrected(key, manifest, said, open_corrections(house), phase=phase, recipe=recipe, calls=calls)
    say(f"{made.id}: noted for {made.recipe}@{made.recipe_version}")


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
    from pandora_dagster.governance.lessons import brief
    from pandora_dagster.wiring.evaluating import open_evaluation, tests_made
    from pandora_dagster.wiring.governing import open_governing

    if (fact or lacks) and not to_tests:
        stop(EXIT_WRONG, "--fact and --lacks say what a test expects: expected --to-tests with a call")
    with stored(context) as house:
        recipe = open_governing(house.settings).shelf.path_of(name)
        if to_tests:
            for path in tests_made(house, recipe, to_tests, facts=fact or (), lacks=lacks or (), last=last):
                say(path)
            return
        groups = open_evaluation(house).lessons(house.cookbook.load(recipe).name, last=last)
    if as_json:
        say_json([json.loads(json.dumps(asdict(group))) for group in groups])
        return
    say_markdown(brief(recipe, groups))
    if groups:
        note(f"a call becomes a test with: pandora recipes lessons {recipe} --to-tests CALL --fact TEXT")
