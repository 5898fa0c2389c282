"""Commands of the learning loop: what people correct, and what failures teach whoever edits a prompt."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from pandora_dagster.cli.opened import app_of_existing_store
from pandora_dagster.cli.output import EXIT_WRONG, print_note, print_line, print_json, print_markdown, exit_with


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
    from pandora_dagster.governance.correcting import attribute_correction as corrected
    from pandora_dagster.wiring.evaluating import open_corrections

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
    from pandora_dagster.governance.lessons import failure_brief
    from pandora_dagster.wiring.evaluating import open_evaluation, make_tests
    from pandora_dagster.wiring.governing import open_recipe_admin

    if (fact or lacks) and not to_tests:
        exit_with(EXIT_WRONG, "--fact and --lacks say what a test expects: expected --to-tests with a call")
    with app_of_existing_store(context) as app:
        recipe = open_recipe_admin(app.settings).shelf.path_of(name)
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
