"""An asset with its checks, and the failure of its run, as all assets beside those of turns have them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dagster as dg

from pandora_dagster.errors import PandoraError


def checked_asset(
    name: str,
    description: str,
    *,
    group: str,
    checks: Mapping[str, str] | None = None,
    deps: Sequence[str | dg.AssetDep] = (),
    days: dg.PartitionsDefinition[Any] | None = None,
    as_range: bool = False,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """A decorator that makes one asset of a function; `checks`: name, or member of a StrEnum -> description.

    `days`: its partitions, of which one run takes one, or with `as_range` a range.
    """
    spec = dg.AssetSpec(name, deps=deps, description=description, group_name=group, kinds={"python"}, code_version="1")
    policy = dg.BackfillPolicy.single_run() if as_range else dg.BackfillPolicy.multi_run(1)
    return dg.multi_asset(
        name=name,
        specs=[spec],
        check_specs=[dg.AssetCheckSpec(str(check), asset=name, description=text) for check, text in (checks or {}).items()],
        partitions_def=days,
        backfill_policy=policy if days else None,
    )


def failure(where: str, error: PandoraError) -> dg.Failure:
    """An error as Dagster shows it, with its hint; the step is not repeated."""
    return dg.Failure(f"{where}: {error}", metadata={"hint": error.hint} if error.hint else {}, allow_retries=False)
