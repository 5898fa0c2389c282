"""Commands that look after recipes and interventions."""

import json
from pathlib import Path
from typing import Annotated

import typer

from pandora_dagster.cli.opened import settings_of, stored
from pandora_dagster.cli.output import EXIT_WRONG, note, say, say_json, say_table, stop

recipes = typer.Typer(name="recipes", help="What every model call runs by.", no_args_is_help=True, rich_markup_mode=None)
interventions = typer.Typer(name="interventions", help="Why turns halted.", no_args_is_help=True, rich_markup_mode=None)
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


def register(app: typer.Typer) -> None:
    app.add_typer(recipes)
    app.add_typer(interventions)


@recipes.command("check")
def check(
    context: typer.Context,
    files: Annotated[list[Path] | None, typer.Argument(help="Recipe files; without any, the whole cookbook and its registry.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Generate registry.yaml and schema.json from the recipe files first.")] = False,
) -> None:
    """Check recipes: every fault is one line.

    It reads `file:line: what: what was expected`. Exit code 2 where there are any.

    Example: pandora recipes check my_recipe.yaml
    """
    from pandora_dagster.wiring.kitchen import check_cookbook, check_files, write_generated

    settings = settings_of(context)
    if write:
        write_generated(settings)
    checked = check_files(settings, files) if files else check_cookbook(settings)
    for notice in checked.notices:
        note(f"notice: {notice}")
    for fault in checked.faults:
        note(fault)
    if checked.faults:
        stop(EXIT_WRONG, f"{len(checked.faults)} faults")
    say(f"{checked.count} recipes, no faults")


@recipes.command("list")
def list_recipes(context: typer.Context, as_json: AsJson = False) -> None:
    """List the recipes with layer, budget and version.

    Example: pandora recipes list
    """
    from pandora_dagster.wiring.kitchen import recipe_rows

    rows = recipe_rows(settings_of(context))
    if as_json:
        say_json(rows)
        return
    columns = ("recipe", "layer", "mode", "total", "prompt", "input", "output", "version")
    say_table(columns, [[row[name] for name in columns] for row in rows])


@interventions.command("list")
def list_interventions(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Resolved ones too.")] = False,
    user: Annotated[str, typer.Option("--user", "-u", help="Only this person's.")] = "",
    as_json: AsJson = False,
) -> None:
    """List open interventions.

    Example: pandora interventions list
    """
    with stored(context) as house:
        found = house.interventions.list(state=None if every else "open", user=user or None)
    if as_json:
        say_json([json.loads(i.model_dump_json()) for i in found])
        return
    rows = [(i.id, i.type.value, f"{i.user_id}:{i.turn_id}" if i.turn_id else "", i.phase, i.state, i.message) for i in found]
    say_table(("Intervention", "Type", "Turn", "Phase", "State", "Message"), rows)


@interventions.command("show")
def show_intervention(
    context: typer.Context,
    intervention: Annotated[str, typer.Argument(help="An id as `pandora interventions list` gives it.")],
    as_json: AsJson = False,
) -> None:
    """Show why a turn halted.

    With the prompt pack that was sent and the raw answer, where they were kept.

    Example: pandora interventions show int_20260914_090512_4f1a
    """
    with stored(context) as house:
        found = house.interventions.show(intervention)
        pack = house.vault.read(found.pack_ref) if found.pack_ref else ""
        answer = house.vault.read(found.answer_ref) if found.answer_ref else ""
    if as_json:
        say_json({**json.loads(found.model_dump_json()), "pack": pack, "answer": answer})
        return
    for name, value in json.loads(found.model_dump_json()).items():
        if value:
            say(f"{name}: {value}")
    for title, text in (("pack", pack), ("answer", answer)):
        if text:
            say(f"\n--- {title}\n{text}")


@interventions.command("resolve")
def resolve_intervention(
    context: typer.Context,
    intervention: Annotated[str, typer.Argument(help="An id as `pandora interventions list` gives it.")],
    note_text: Annotated[str, typer.Option("--note", help="What was done about it.")] = "",
) -> None:
    """Mark an intervention as resolved.

    `pandora resume` then goes on with its turn.

    Example: pandora interventions resolve int_20260914_090512_4f1a --note "server restarted"
    """
    with stored(context) as house:
        found = house.interventions.resolve(intervention, note_text)
        left = house.left_to_do(house.turns.resolve(f"{found.user_id}:{found.turn_id}")) if found.turn_id else ()
    say(f"{found.id} resolved")
    if left:
        note(f"left to do: {', '.join(left)}")
        note(f"go on with: pandora resume {found.user_id}:{found.turn_id}")
