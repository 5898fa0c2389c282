"""What all assets but those of turns share: the definition of an asset with its checks, and the failure of its run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dagster as dg

from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import PandoraError

OWNER = "team:pandora"
"""The owner of every asset, as Dagster's catalog filters by it."""


def checked_asset(
    name: str,
    description: str,
    *,
    group: str,
    checks: Mapping[str, str] | None = None,
    deps: Sequence[str | dg.AssetDep] = (),
    partitions: dg.PartitionsDefinition[Any] | None = None,
    single_run: bool = False,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """A decorator that makes one asset of a function.

    `checks`: name, or member of a StrEnum -> description. A run takes one of `partitions`, or with `single_run` a range of them.
    """
    spec = dg.AssetSpec(name, deps=deps, description=description, group_name=group, kinds={"python"}, code_version="1", owners=[OWNER])
    backfill_policy = dg.BackfillPolicy.single_run() if single_run else dg.BackfillPolicy.multi_run(1)
    return dg.multi_asset(
        name=name,
        specs=[spec],
        check_specs=[dg.AssetCheckSpec(str(check), asset=name, description=meaning) for check, meaning in (checks or {}).items()],
        partitions_def=partitions,
        backfill_policy=backfill_policy if partitions else None,
    )


def failure(where: str, error: PandoraError) -> dg.Failure:
    """The Dagster failure for an error of `where`, with its hint; the step is not retried."""
    return dg.Failure(redact(f"{where}: {error}"), metadata={"hint": redact(error.hint)} if error.hint else {}, allow_retries=False)
