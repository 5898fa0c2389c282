"""Compressed texts that were made lately, for the time that settings give them. Knows keys and time; compresses nothing."""

from collections import OrderedDict
from collections.abc import Hashable
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from pandora_dagster.contracts.ports import Clock

Value = TypeVar("Value")
MAX_ENTRIES = 256


class CompressionCache(Generic[Value]):
    """Values by key for `ttl_s` seconds; 0 keeps none. Only sound texts come in: a failed one is never stored."""

    def __init__(self, clock: Clock, ttl_s: int) -> None:
        self._clock = clock
        self._lifetime = timedelta(seconds=ttl_s)
        self._kept: OrderedDict[Hashable, tuple[datetime, Value]] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        """The value of `key`, None where there is none or its time is over."""
        found = self._kept.get(key)
        if found is None:
            return None
        until, value = found
        if self._clock() >= until:
            del self._kept[key]
            return None
        return value

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a value; the oldest one goes where there are too many."""
        if self._lifetime:
            self._kept[key] = (self._clock() + self._lifetime, value)
            if len(self._kept) > MAX_ENTRIES:
                self._kept.popitem(last=False)
