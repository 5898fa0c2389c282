"""Another version or layer put into production, and taken back. Knows what may stand there; writes through its port."""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.ports.record_storage import RecipeVersionStore
from pandora_dagster.contracts.recipe_governance import ProductionChange, RecipeProduction
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.documents.timestamps import format_timestamp
from pandora_dagster.errors import ConfigurationError, InputError
from pandora_dagster.governance.answer_compatibility import incompatibilities

FILE = "file"
"""Names the version that the recipe's file has."""
AnswerModelLookup = Callable[[str], type[BaseModel] | None]


@dataclass(frozen=True, slots=True)
class ChangeAttribution:
    """Who changes production, and why: stands in the history."""

    who: str
    why: str


@dataclass(frozen=True, slots=True)
class PromotionContext:
    """What a change of production works with."""

    versions: RecipeVersionStore
    file: Callable[[str], LoadedRecipe]
    """The recipe as its file has it; raises ConfigurationError for a broken one."""
    reader: AnswerModelLookup
    """What a recipe's answer is read as."""
    clock: Clock


def resolve_version(ctx: PromotionContext, recipe: str, version: str) -> LoadedRecipe:
    """`file`, `production`, or the first digits of a kept version, on the layer that is assigned to the recipe.

    Raises InputError, DocumentError, ConfigurationError.
    """
    standing = ctx.versions.production(recipe)
    return _named_version(ctx, recipe, version, standing).model_copy(update={"assigned": standing.layer})


def _named_version(ctx: PromotionContext, recipe: str, version: str, standing: RecipeProduction) -> LoadedRecipe:
    if version == FILE or (version == "production" and not standing.pinned):
        return ctx.file(recipe)
    if version == "production":
        return ctx.versions.version(recipe, standing.pinned)
    found = _file_or_none(ctx, recipe)
    if found and len(version) >= 4 and found.version.startswith(version) and found.version not in ctx.versions.versions(recipe):
        return found
    return ctx.versions.version(recipe, version)


def roll_back(ctx: PromotionContext, recipe: str, by: ChangeAttribution, *, to: str = "") -> RecipeProduction:
    """Put a kept version into production, by default the one before the present one; `to="file"` or the version that the file has
    lets the file count again. Raises InputError for one that is unknown, ambiguous, there already, or that nobody could read, and where
    somebody else changed production meanwhile."""
    standing, file = ctx.versions.production(recipe), _file_or_none(ctx, recipe)
    chosen = resolve_version(ctx, recipe, to or _previous_version(ctx, recipe, standing, file))
    present = standing.pinned or (file.version if file else "")
    if chosen.version == present and not (standing.pinned and to == FILE):
        raise InputError(f"{recipe}: version {chosen.version} is in production already: expected another one")
    require_compatible(ctx, recipe, chosen, file)
    released = file is not None and chosen.version == file.version
    if released:
        ctx.versions.keep(chosen)
    change = ProductionChange(
        at=_now(ctx), kind="release" if released else "rollback", version=chosen.version, layer=standing.layer, who=by.who, why=by.why
    )
    return ctx.versions.change(recipe, change, since=standing, pinned="" if released else chosen.version)


def assign(ctx: PromotionContext, recipe: str, layer: ModelLayer | None, by: ChangeAttribution) -> RecipeProduction:
    """Let another layer answer, the text as it is; None for the version's own layer, which may be named too. Raises InputError where
    nothing would change, for a recipe of `compression/`, whose layer is a setting's, and where somebody changed production meanwhile."""
    if recipe.startswith("compression/"):
        raise InputError(f"{recipe}: COMPRESSION_MODEL_LAYER names the layer of all of compression/: expected a recipe of another category")
    present = resolve_version(ctx, recipe, "production")
    ctx.versions.keep(present)
    standing = ctx.versions.production(recipe)
    layer = None if layer is present.recipe.model_layer else layer
    if layer is standing.layer:
        raise InputError(f"{recipe}: {layer or 'its own layer'} answers already: expected another layer")
    change = ProductionChange(at=_now(ctx), kind="layer", version=standing.version, layer=layer, who=by.who, why=by.why)
    return ctx.versions.change(recipe, change, since=standing, pinned=standing.pinned)


def require_compatible(ctx: PromotionContext, recipe: str, chosen: LoadedRecipe, file: LoadedRecipe | None) -> None:
    """Raises InputError that names each field of a version's answer which what follows can not read."""
    if faults := incompatibilities(chosen.recipe, ctx.reader(recipe), like=file.recipe if file else None):
        told = "; ".join(faults)
        raise InputError(f"{recipe}@{chosen.version}: what follows can not read its answers: {told}", hint="put another version there")


def _previous_version(ctx: PromotionContext, recipe: str, standing: RecipeProduction, file: LoadedRecipe | None) -> str:
    """The version before the present one; where the file was edited and has not run yet, the one that ran last."""
    ran_last = standing.version
    unrun = not standing.pinned and file is not None and file.version != ran_last
    found = ran_last if unrun else standing.predecessor
    if not found:
        raise InputError(f"{recipe}: no version ran before the present one: expected --to one of pandora recipes history {recipe}")
    return found


def _file_or_none(ctx: PromotionContext, recipe: str) -> LoadedRecipe | None:
    """The file's version; None where the file is broken or gone, which an older version may stand in for."""
    try:
        return ctx.file(recipe)
    except ConfigurationError:
        return None


def _now(ctx: PromotionContext) -> str:
    return format_timestamp(ctx.clock().replace(microsecond=0))
