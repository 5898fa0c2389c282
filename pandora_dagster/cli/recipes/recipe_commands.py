"""Commands for recipes and their versions: check, list, show, history, diff, rollback, assign."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import AsJson, RecipeName, settings_of
from pandora_dagster.cli.output import EXIT_USAGE, exit_with, print_json, print_line, print_note, print_rows, print_table
from pandora_dagster.language.word_forms import counted

if TYPE_CHECKING:
    from pandora_dagster.contracts.recipe_governance import RecipeCalibration

Why = Annotated[str, typer.Option("--why", help="Reason, stored in the history.")]
By = Annotated[str, typer.Option("--by", help="Name stored in the history; default: the login name.")]


def check(
    context: typer.Context,
    files: Annotated[list[Path] | None, typer.Argument(help="Recipe files; default: all recipes and their registry.")] = None,
    write: Annotated[bool, typer.Option("--write", help="First generate registry.yaml and schema.json from the recipe files.")] = False,
) -> None:
    """Check recipes and report every fault on one line.

    A fault is `file:line: what: what was expected`. The exit code is 2 if there is one.

    Example: pandora recipes check my_recipe.yaml
    """
    from pandora_dagster.app.recipe_admin import check_files, check_recipes, write_generated

    settings = settings_of(context)
    if write:
        write_generated(settings)
    result = check_files(files) if files else check_recipes(settings)
    for notice in result.notices:
        print_note(f"notice: {notice}")
    for fault in result.faults:
        print_note(fault)
    if result.faults:
        exit_with(EXIT_USAGE, counted(len(result.faults), "fault"))
    for approval in result.approvals:
        print_line(approval)
    print_line(f"{counted(result.count, 'recipe')}, no faults")


def list_recipes(context: typer.Context, as_json: AsJson = False) -> None:
    """List recipes with layer, token budget and version.

    Example: pandora recipes list
    """
    from pandora_dagster.app.recipe_admin import recipe_rows

    columns = ("recipe", "layer", "mode", "total", "prompt", "input", "output", "version")
    print_rows(recipe_rows(settings_of(context)), {name: name for name in columns}, as_json=as_json)


def show(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A recipe, or NAME@VERSION: digits of a hash, file or production.")],
    as_json: AsJson = False,
) -> None:
    """Show a recipe in production or one of its versions.

    The prompts are printed after the recipe.

    Example: pandora recipes show reflection@file
    """
    from pandora_dagster.app.recipe_admin import open_recipe_admin

    admin = open_recipe_admin(settings_of(context))
    recipe, loaded = admin.find(name)
    recipe_fields = json.loads(loaded.recipe.model_dump_json(exclude_none=True))
    if as_json:
        calibration = [table.model_dump(mode="json") for table in admin.versions.calibration(recipe).tables]
        print_json({"path": loaded.path, "version": loaded.version, "recipe": recipe_fields, "calibration": calibration})
        return
    if layer := admin.versions.production(recipe).layer:
        print_note(f"{layer} answers: assigned, not from the recipe text")
    print_line(f"{loaded.path}  version {loaded.version}  prompt version {loaded.prompt_version}")
    print_line(json.dumps(recipe_fields, ensure_ascii=False, indent=2))
    for file, text in loaded.prompts:
        print_line(f"\n--- {file.path}\n{text}")
    if loaded.recipe.quality_gates.confidence_threshold is not None:
        _print_calibration(admin.versions.calibration(recipe), loaded.version)


def _print_calibration(calibration: "RecipeCalibration", version: str) -> None:
    """The outcomes of answers by the confidence that they stated, for each model."""
    from pandora_dagster.contracts.recipe_governance import CALIBRATION_BINS, MIN_OUTCOMES

    rows = [
        (
            table.model,
            f"{number / CALIBRATION_BINS:.1f} to {(number + 1) / CALIBRATION_BINS:.1f}",
            f"{outcomes.good} of {outcomes.calls}",
            "{:.2f} to {:.2f}".format(*outcomes.bounds),
            "yes" if outcomes.calls >= MIN_OUTCOMES else "no",
        )
        for table in calibration.tables
        if table.version == version
        for number, outcomes in enumerate(table.bins)
        if outcomes.calls
    ]
    if not rows:
        print_note("confidence is not calibrated: no outcome of a model's answer is recorded; pandora recipes scores records them")
        return
    print_line(f"\nConfidence, calibrated at {calibration.at}")
    print_table(("Model", "Stated", "Turned out well", "95 %", "Threshold acts"), rows)


def history(context: typer.Context, name: RecipeName, as_json: AsJson = False) -> None:
    """Show the production history of a recipe, newest last.

    Example: pandora recipes history reflection
    """
    from pandora_dagster.app.recipe_admin import open_recipe_admin

    admin = open_recipe_admin(settings_of(context))
    recipe = admin.recipes.path_of(name)
    record = admin.versions.production(recipe)
    if as_json:
        print_json({**record.model_dump(mode="json"), "kept": list(admin.versions.versions(recipe))})
        return
    print_rows(
        record.history,
        {"From": "at", "What": "kind", "Version": "version", "Before": "before", "Layer": "layer", "Who": "who", "Why": "why"},
        empty=f"{recipe}: no call ran yet; the next call uses its file",
    )
    if record.pinned:
        print_note(f"{record.pinned} replaces the recipe's file; undo with: pandora recipes rollback {recipe} --to file")


def diff(
    context: typer.Context,
    old: Annotated[str, typer.Argument(help="NAME@VERSION.")],
    new: Annotated[str, typer.Argument(help="NAME@VERSION, or a version of the same recipe; default: production.")] = "",
) -> None:
    """Compare two versions of a recipe, part by part.

    Example: pandora recipes diff reflection@3fd9c2 file
    """
    from pandora_dagster.app.recipe_admin import open_recipe_admin, two_versions
    from pandora_dagster.recipes.version_text import version_difference

    admin = open_recipe_admin(settings_of(context))
    before, after = two_versions(admin, old, new)
    text = version_difference(before, after, admin.counter)
    if text:
        print_line(text.rstrip("\n"))
    else:
        print_note(f"{before.path}@{before.version} and {after.path}@{after.version} say the same")


def rollback(
    context: typer.Context,
    name: RecipeName,
    to: Annotated[str, typer.Option("--to", help="A stored version, or file; default: the previous version.")] = "",
    why: Why = "",
    by: By = "",
) -> None:
    """Put an earlier version of a recipe into production.

    It replaces the recipe's file, which does not change, until --to file undoes it. A version whose answers the phases cannot read is
    refused.

    Example: pandora recipes rollback reflection --why "asks back too often"
    """
    from pandora_dagster.app.recipe_admin import open_recipe_admin
    from pandora_dagster.governance.promotion import ChangeAttribution, roll_back

    admin = open_recipe_admin(settings_of(context))
    recipe = admin.recipes.path_of(name)
    production = roll_back(admin.ctx, recipe, ChangeAttribution(by or _login_name(), why), to=to)
    source = "in place of the recipe's file" if production.pinned else "from the recipe's file"
    print_line(f"{recipe}: version {production.version} is in production {source} (before: {production.history[-1].before or 'none'})")


def assign(
    context: typer.Context,
    name: RecipeName,
    layer: Annotated[str, typer.Argument(help="REFLEX, NERVES, MIND, VOICE or EYES; own for that of the recipe.")],
    why: Why = "",
    by: By = "",
) -> None:
    """Assign another model layer to a recipe.

    The text and the version of the recipe do not change.

    Example: pandora recipes assign reflection MIND --why "it asks too often"
    """
    from pandora_dagster.app.recipe_admin import open_recipe_admin
    from pandora_dagster.contracts.enums import ModelLayer
    from pandora_dagster.governance.promotion import ChangeAttribution
    from pandora_dagster.governance.promotion import assign as assign_layer

    if layer != "own" and layer not in tuple(ModelLayer):
        exit_with(EXIT_USAGE, f"{layer}: not a layer: expected {', '.join(ModelLayer)} or own")
    admin = open_recipe_admin(settings_of(context))
    recipe = admin.recipes.path_of(name)
    production = assign_layer(admin.ctx, recipe, None if layer == "own" else ModelLayer(layer), ChangeAttribution(by or _login_name(), why))
    print_line(f"{recipe}: {production.layer or 'its own layer'} answers from now on; the version is still {production.version}")


def _login_name() -> str:
    """The login name, or `unknown`."""
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"
