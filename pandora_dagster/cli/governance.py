"""Commands that look after recipes as files."""

from pathlib import Path
from typing import Annotated

import typer

from pandora_dagster.cli.opened import settings_of
from pandora_dagster.cli.output import EXIT_WRONG, print_note, print_line, print_json, print_table, exit_with

recipes = typer.Typer(name="recipes", help="What every model call runs by.", no_args_is_help=True, rich_markup_mode=None)
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


def register(app: typer.Typer) -> None:
    app.add_typer(recipes)


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
    from pandora_dagster.wiring.kitchen import check_recipes, check_files, write_generated

    settings = settings_of(context)
    if write:
        write_generated(settings)
    checked = check_files(settings, files) if files else check_recipes(settings)
    for notice in checked.notices:
        print_note(f"notice: {notice}")
    for fault in checked.faults:
        print_note(fault)
    if checked.faults:
        exit_with(EXIT_WRONG, f"{len(checked.faults)} faults")
    print_line(f"{checked.count} recipes, no faults")


@recipes.command("list")
def list_recipes(context: typer.Context, as_json: AsJson = False) -> None:
    """List the recipes with layer, budget and version.

    Example: pandora recipes list
    """
    from pandora_dagster.wiring.kitchen import recipe_rows

    rows = recipe_rows(settings_of(context))
    if as_json:
        print_json(rows)
        return
    columns = ("recipe", "layer", "mode", "total", "prompt", "input", "output", "version")
    print_table(columns, [[row[name] for name in columns] for row in rows])
