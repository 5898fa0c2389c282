"""Promotion and rollback of recipe versions and layers in production."""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.ports.record_storage import RecipeVersionStore
from pandora_dagster.contracts.recipe_governance import ProductionChange, RecipeProduction
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.errors import ConfigurationError, InputError
from pandora_dagster.governance.answer_compatibility import find_incompatibilities
from pandora_dagster.language.timestamps import format_timestamp

FILE_VERSION, PRODUCTION_VERSION = "file", "production"
"""Names of the version in the recipe's file and of the version in production."""
_MIN_VERSION_DIGITS = 4
"""Digits of an abbreviated version at least."""
AnswerModelLookup = Callable[[str], type[BaseModel] | None]


@dataclass(frozen=True, slots=True)
class ChangeAttribution:
    """Who changes production, and why, for the history."""

    who: str
    why: str


@dataclass(frozen=True, slots=True)
class PromotionContext:
    """Dependencies of a change of production."""

    versions: RecipeVersionStore
    load_file: Callable[[str], LoadedRecipe]
    """Loads a recipe from its file; raises ConfigurationError for a broken one."""
    answer_model: AnswerModelLookup
    """Returns the model that reads a recipe's answers."""
    clock: Clock


def resolve_version(ctx: PromotionContext, recipe: str, version: str) -> LoadedRecipe:
    """Load `file`, `production`, or a stored version by its first digits, on the layer that is assigned to the recipe.

    Raises InputError, DocumentError, ConfigurationError.
    """
    production = ctx.versions.production(recipe)
    return _named_version(ctx, recipe, version, production).model_copy(update={"assigned": production.layer})


def _named_version(ctx: PromotionContext, recipe: str, version: str, production: RecipeProduction) -> LoadedRecipe:
    if version == FILE_VERSION or (version == PRODUCTION_VERSION and not production.pinned):
        return ctx.load_file(recipe)
    if version == PRODUCTION_VERSION:
        return ctx.versions.version(recipe, production.pinned)
    file = _file_or_none(ctx, recipe)
    is_abbreviation = len(version) >= _MIN_VERSION_DIGITS
    if file and is_abbreviation and file.version.startswith(version) and file.version not in ctx.versions.versions(recipe):
        return file
    return ctx.versions.version(recipe, version)


def roll_back(ctx: PromotionContext, recipe: str, by: ChangeAttribution, *, to: str = "") -> RecipeProduction:
    """Put a stored version into production, by default the one before the current one.

    `to="file"` or the file's version releases the pin, so that the file is used again. Raises InputError for a version that is unknown,
    ambiguous, in production already or incompatible with its reader, and after a concurrent change of production.
    """
    production, file = ctx.versions.production(recipe), _file_or_none(ctx, recipe)
    chosen = resolve_version(ctx, recipe, to or _previous_version(recipe, production, file))
    current_version = production.pinned or (file.version if file else "")
    if chosen.version == current_version and not (production.pinned and to == FILE_VERSION):
        raise InputError(f"{recipe}: version {chosen.version} is in production already: expected another one")
    require_compatible(ctx, recipe, chosen, file)
    is_release = file is not None and chosen.version == file.version
    if is_release:
        ctx.versions.keep(chosen)
    change = ProductionChange(
        at=_now(ctx), kind="release" if is_release else "rollback", version=chosen.version, layer=production.layer, who=by.who, why=by.why
    )
    return ctx.versions.change(recipe, change, since=production, pinned="" if is_release else chosen.version)


def assign(ctx: PromotionContext, recipe: str, layer: ModelLayer | None, by: ChangeAttribution) -> RecipeProduction:
    """Assign a layer to a recipe without changing its text; None, or the version's own layer, removes the assignment.

    Raises InputError where nothing would change, for a recipe of `compression/`, whose layer is a setting, and after a concurrent change of
    production.
    """
    if recipe.startswith("compression/"):
        raise InputError(f"{recipe}: COMPRESSION_MODEL_LAYER sets the layer of all of compression/: expected a recipe of another category")
    current = resolve_version(ctx, recipe, PRODUCTION_VERSION)
    ctx.versions.keep(current)
    production = ctx.versions.production(recipe)
    layer = None if layer is current.recipe.model_layer else layer
    if layer is production.layer:
        raise InputError(f"{recipe}: {layer or 'its own layer'} answers already: expected another layer")
    change = ProductionChange(at=_now(ctx), kind="layer", version=production.version, layer=layer, who=by.who, why=by.why)
    return ctx.versions.change(recipe, change, since=production, pinned=production.pinned)


def require_compatible(ctx: PromotionContext, recipe: str, chosen: LoadedRecipe, file: LoadedRecipe | None) -> None:
    """Raise InputError that names each field of a version's answers that the reader cannot read."""
    if faults := find_incompatibilities(chosen.recipe, ctx.answer_model(recipe), like=file.recipe if file else None):
        fields = "; ".join(faults)
        raise InputError(f"{recipe}@{chosen.version}: its answers cannot be read: {fields}", hint="choose another version")


def _previous_version(recipe: str, production: RecipeProduction, file: LoadedRecipe | None) -> str:
    """The version before the current one; where the file was edited and has not run yet, the version that ran last."""
    is_file_unused = not production.pinned and file is not None and file.version != production.version
    previous = production.version if is_file_unused else production.predecessor
    if not previous:
        raise InputError(f"{recipe}: no version ran before the current one: expected --to one of pandora recipes history {recipe}")
    return previous


def _file_or_none(ctx: PromotionContext, recipe: str) -> LoadedRecipe | None:
    """The file's version; None where the file is broken or missing, so that an older version can replace it."""
    try:
        return ctx.load_file(recipe)
    except ConfigurationError:
        return None


def _now(ctx: PromotionContext) -> str:
    return format_timestamp(ctx.clock().replace(microsecond=0))
