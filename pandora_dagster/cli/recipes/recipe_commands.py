"""Commands for the versions of a recipe: show, history, diff, rollback, assign."""

import json
from pathlib import Path
from typing import Annotated

import typer

from pandora_dagster.cli.app_context import settings_of
from pandora_dagster.cli.output import EXIT_WRONG, exit_with, print_json, print_line, print_note, print_table

# Commands that look after recipes as files.

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
    from pandora_dagster.app.recipe_admin import check_files, check_recipes, write_generated

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
    from pandora_dagster.app.recipe_admin import recipe_rows

    rows = recipe_rows(settings_of(context))
    if as_json:
        print_json(rows)
        return
    columns = ("recipe", "layer", "mode", "total", "prompt", "input", "output", "version")
    print_table(columns, [[row[name] for name in columns] for row in rows])


VersionAsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Name = Annotated[str, typer.Argument(help="{category}/{name}, or short: reflection, planner_chat.")]
Why = Annotated[str, typer.Option("--why", help="Stands in the history.")]
By = Annotated[str, typer.Option("--by", help="Who stands in the history; default: who is logged in.")]


def register_versions(recipes: typer.Typer) -> None:
    recipes.command("show")(show)
    recipes.command("history")(history)
    recipes.command("diff")(diff)
    recipes.command("rollback")(rollback)
    recipes.command("assign")(assign)


def show(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A recipe, or NAME@VERSION: digits of a hash, file, or production.")],
    as_json: VersionAsJson = False,
) -> None:
    """Show a recipe as it is in production, or one of its versions, with what its calls begin with.

    Example: pandora recipes show reflection@file
    """
    from pandora_dagster.app.recipe_admin import open_recipe_admin

    governing = open_recipe_admin(settings_of(context))
    recipe, loaded = governing.find(name)
    plain = json.loads(loaded.recipe.model_dump_json(exclude_none=True))
    if as_json:
        print_json({"path": loaded.path, "version": loaded.version, "recipe": plain})
        return
    if layer := governing.versions.production(recipe).layer:
        print_note(f"{layer} answers, assigned apart from the text")
    print_line(f"{loaded.path}  version {loaded.version}  prompt version {loaded.prompt_version}")
    print_line(json.dumps(plain, ensure_ascii=False, indent=2))
    for file, text in loaded.prompts:
        print_line(f"\n--- {file.path}\n{text}")


def history(context: typer.Context, name: Name, as_json: VersionAsJson = False) -> None:
    """Show what was in production when, by whom and why, newest last.

    Example: pandora recipes history reflection
    """
    from pandora_dagster.app.recipe_admin import open_recipe_admin

    governing = open_recipe_admin(settings_of(context))
    recipe = governing.recipes.path_of(name)
    standing = governing.versions.production(recipe)
    kept = governing.versions.versions(recipe)
    if as_json:
        print_json({**json.loads(standing.model_dump_json()), "kept": list(kept)})
        return
    rows = [(c.at, c.kind, c.version, c.before, c.layer or "", c.who, c.why) for c in standing.history]
    print_table(("From", "What", "Version", "Before", "Layer", "Who", "Why"), rows)
    if standing.pinned:
        print_note(
            f"{standing.pinned} stands over the recipe's file; pandora recipes rollback {recipe} --to file lets the file count again"
        )
    if not rows:
        print_note(f"{recipe}: no call ran yet; its file is what will run")


def diff(
    context: typer.Context,
    old: Annotated[str, typer.Argument(help="NAME@VERSION.")],
    new: Annotated[str, typer.Argument(help="NAME@VERSION, or a version of the same recipe; default: what is in production.")] = "",
) -> None:
    """Compare two versions of a recipe, part by part, with their tokens.

    Example: pandora recipes diff reflection@3fd9c2 file
    """
    from pandora_dagster.app.recipe_admin import open_recipe_admin, two_versions
    from pandora_dagster.recipes.version_text import version_difference

    governing = open_recipe_admin(settings_of(context))
    before, after = two_versions(governing, old, new)
    text = version_difference(before, after, governing.counter)
    if text:
        print_line(text.rstrip("\n"))
    else:
        print_note(f"{before.path}@{before.version} and {after.path}@{after.version} say the same")


def rollback(
    context: typer.Context,
    name: Name,
    to: Annotated[str, typer.Option("--to", help="A kept version, or file; default: the version before the present one.")] = "",
    why: Why = "",
    by: By = "",
) -> None:
    """Put an earlier version into production, without touching a file.

    It stands over the recipe's file until it is undone with --to file. Refused where the phases could not read its answers.

    Example: pandora recipes rollback reflection --why "asks back too often"
    """
    from pandora_dagster.app.recipe_admin import open_recipe_admin
    from pandora_dagster.governance.promotion import ChangeAttribution as Told
    from pandora_dagster.governance.promotion import roll_back

    governing = open_recipe_admin(settings_of(context))
    recipe = governing.recipes.path_of(name)
    made = roll_back(governing.ctx, recipe, Told(by or _login_name(), why), to=to)
    over = " over the recipe's file" if made.pinned else ", as the recipe's file has it"
    print_line(f"{recipe}: version {made.version} is in production{over} (before: {made.history[-1].before or 'none'})")


def assign(
    context: typer.Context,
    name: Name,
    layer: Annotated[str, typer.Argument(help="REFLEX, NERVES, MIND, VOICE or EYES; own for the recipe's own.")],
    why: Why = "",
    by: By = "",
) -> None:
    """Let another model layer answer a recipe's calls; its text and version stay.

    Example: pandora recipes assign reflection MIND --why "REFLEX asks back too often"
    """
    from pandora_dagster.app.recipe_admin import open_recipe_admin
    from pandora_dagster.contracts.enums import ModelLayer
    from pandora_dagster.governance.promotion import ChangeAttribution as Told
    from pandora_dagster.governance.promotion import assign as assigned

    if layer != "own" and layer not in tuple(ModelLayer):
        exit_with(EXIT_WRONG, f"{layer}: not a layer: expected {', '.join(ModelLayer)} or own")
    governing = open_recipe_admin(settings_of(context))
    recipe = governing.recipes.path_of(name)
    made = assigned(governing.ctx, recipe, None if layer == "own" else ModelLayer(layer), Told(by or _login_name(), why))
    print_line(f"{recipe}: {made.layer or 'its own layer'} answers from now on; the version stays {made.version}")


def _login_name() -> str:
    """The name of who is logged in, where the system knows one."""
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"
