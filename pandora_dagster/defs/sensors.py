# pyright: reportUnknownMemberType=false
# (the signature of dg.sensor names a bare PathLike)
"""The sensor of the inbox. Knows ticks, cursors and run keys; which files wait is the inbox's to say."""

import json
from collections.abc import Iterator
from typing import cast

import dagster as dg

from pandora_dagster.defs.assets_batch import ASSET, JOB
from pandora_dagster.defs.resources import BatchRunner

_EVERY_S = 10
_TRIES = 3
"""Runs of one file: a run that was killed leaves its file in the inbox, and the next goes on with it."""
_UNDER_WAY = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def inbox_sensor() -> dg.SensorDefinition:
    """`inbox_files`: a run for each whole file of the inbox, one after the other. A file is whole when two ticks find it alike."""

    @dg.sensor(
        name="inbox_files",
        job_name=JOB,
        minimum_interval_seconds=_EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts turn_batch for each file in <root>/inbox that nobody writes any more; the key of its run is its digest.",
    )
    def inbox_files(context: dg.SensorEvaluationContext, night: dg.ResourceParam[BatchRunner]) -> dg.SensorResult | dg.SkipReason:
        before = cast(dict[str, str], json.loads(context.cursor)) if context.cursor else {}
        now = night.fingerprints()
        cursor = json.dumps(now, sort_keys=True)
        whole = [name for name, stamp in now.items() if before.get(name) == stamp]
        requests = list(_requests(whole, context.instance, night))
        if not requests:
            context.update_cursor(cursor)
            return dg.SkipReason(f"{len(now)} files in the inbox, none of them to begin now")
        return dg.SensorResult(run_requests=requests[:1], cursor=cursor)

    return inbox_files


def _requests(names: list[str], instance: dg.DagsterInstance, night: BatchRunner) -> Iterator[dg.RunRequest]:
    """The first file that no run has, unless a run of another is under way: it would only share its places at the servers."""
    if instance.get_runs_count(dg.RunsFilter(job_name=JOB, statuses=_UNDER_WAY)):
        return
    for name in names:
        digest, day = night.identity(name)
        tries = instance.get_runs_count(dg.RunsFilter(tags={"pandora/batch": digest}))
        if tries < _TRIES:
            key = f"{digest}:{tries + 1}" if tries else digest
            config = dg.RunConfig(ops={ASSET: {"config": {"file": name}}})
            yield dg.RunRequest(run_key=key, partition_key=day, run_config=config, tags={"pandora/batch": digest, "pandora/file": name})
