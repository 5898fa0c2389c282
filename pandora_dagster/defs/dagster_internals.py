"""The private parts of Dagster that this package uses, all imported here; `tests/defs/test_dagster_internals.py` names one that moved.

Dagster 1.13 has no public way to record a run that it did not execute (its events and origin), to open an instance with overrides
of its configuration, to name the tags of a data version, or to change the stored configuration of a run. The web page and
`dagster-graphql` use the same names.
"""

from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    INPUT_DATA_VERSION_TAG_PREFIX,
    INPUT_EVENT_POINTER_TAG_PREFIX,
    NULL_EVENT_POINTER,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.events import AssetMaterializationPlannedData, JobFailureData, RunFailureReason, StepMaterializationData
from dagster._core.execution.plan.objects import StepFailureData, StepSuccessData, UserFailureData
from dagster._core.instance import InstanceRef
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.storage.runs import SqlRunStorage
from dagster._core.storage.runs.schema import RunsTable
from dagster._record import copy  # pyright: ignore[reportUnknownVariableType]
from dagster._utils.error import SerializableErrorInfo  # pyright: ignore[reportPrivateImportUsage] - of dagster_shared, no dependency of ours

ErrorInfo = SerializableErrorInfo
DAEMON_MODULE = "dagster._daemon"
"""The module that runs the daemon, for `python -m`."""
NO_COMPUTE_LOGS = {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
"""The setting `compute_logs` of an instance whose runs capture no output."""

__all__ = [
    "CODE_VERSION_TAG",
    "DAEMON_MODULE",
    "DATA_VERSION_TAG",
    "DEFAULT_DATA_VERSION",
    "INPUT_DATA_VERSION_TAG_PREFIX",
    "INPUT_EVENT_POINTER_TAG_PREFIX",
    "NO_COMPUTE_LOGS",
    "NULL_EVENT_POINTER",
    "AssetMaterializationPlannedData",
    "ErrorInfo",
    "InstanceRef",
    "JobFailureData",
    "RegisteredCodeLocationOrigin",
    "RemoteJobOrigin",
    "RemoteRepositoryOrigin",
    "RunFailureReason",
    "RunsTable",
    "SqlRunStorage",
    "StepFailureData",
    "StepMaterializationData",
    "StepSuccessData",
    "UnresolvedAssetJobDefinition",
    "UserFailureData",
    "copy",
]
