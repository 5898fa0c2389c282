"""The tools that exist where settings say so; apart from their adapters, so that a store without them loads none of these."""

from collections.abc import Callable, Sequence

from pandora_dagster.app.adapters.store_adapters import StoreAdapters
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog, RecipeExecutor
from pandora_dagster.contracts.ports.tool import Tool
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.settings import Settings


def usable_searches(settings: Settings, *, is_web_open: bool = False) -> tuple[str, ...]:
    """The search providers of PANDORA_SEARCH that may be used: where the web is off, folders of documents. `is_web_open`: whether a
    command opens the web whatever PANDORA_WEB says."""
    named = (part for part in settings.search.split(",") if part)
    return tuple(part for part in named if is_web_open or settings.web == "on" or part.startswith("folder="))


def named_providers(settings: Settings, named: Sequence[str], *, is_web_open: bool) -> tuple[str, ...]:
    """The specifications that a command uses: those `named` on its line, else those of the settings that may be used; raises
    ConfigurationError where there are none. `is_web_open`: whether the command reads pages of the web."""
    if usable := tuple(named) or usable_searches(settings, is_web_open=is_web_open):
        return usable
    if settings.search:
        raise ConfigurationError(
            f"PANDORA_WEB: off: no provider of PANDORA_SEARCH ({settings.search}) may be used: expected on, or a folder of documents"
        )
    raise ConfigurationError("PANDORA_SEARCH: not set, and no --provider is given: expected searxng=URL, folder=DIR or recorded=FILE")


def open_web_tools(
    settings: Settings,
    stores: StoreAdapters,
    clock: Clock,
    execution: RecipeExecutor,
    recipes: RecipeCatalog,
    runtime: ModelRuntime,
    *,
    report: Callable[[str], None],
) -> tuple[Tool, ...]:
    """`internet.research` where a search provider is named and the web is on, or the provider is a folder.

    `report` receives a sentence where the extra is missing.
    """
    if not (searches := usable_searches(settings)):
        return ()
    try:
        from pandora_dagster.app.web.screenshot_reader import ScreenshotReader
        from pandora_dagster.app.web.turn_privacy import UserStores
        from pandora_dagster.app.web.web_researcher import open_research_tool
    except ImportError as error:
        report(f"{error.name}: not installed: turns find nothing out on the web: expected the extra web")
        return ()
    user_stores = UserStores(stores.turns, stores.index, stores.memory, stores.facts, stores.sources)
    return (open_research_tool(settings, user_stores, searches, clock, execution, ScreenshotReader(execution, recipes, runtime)),)


def open_named_tools(settings: Settings, *, report: Callable[[str], None]) -> tuple[Tool, ...]:
    """The tools of other packages that `PANDORA_TOOLS` names; `report` receives a sentence for each that cannot be used."""
    if not settings.tools:
        return ()
    from pandora_dagster.tools.plugins import open_plugin_tools

    return open_plugin_tools(settings.tools.split(","), is_web_open=settings.web == "on", report=report)
