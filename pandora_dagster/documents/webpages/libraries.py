"""The libraries of the extra `web`, imported when the first page is read."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from pandora_dagster.errors import ConfigurationError

_MODULES: Mapping[str, Callable[[], Any]] = {
    "babel.core": lambda: import_module("babel.core"),
    "babel.numbers": lambda: import_module("babel.numbers"),
    "charset_normalizer": lambda: import_module("charset_normalizer"),
    "charset_normalizer.md": lambda: import_module("charset_normalizer.md"),
    "cssselect2": lambda: import_module("cssselect2"),
    "lxml.etree": lambda: import_module("lxml.etree"),
    "lxml.html": lambda: import_module("lxml.html"),
    "price_parser": lambda: import_module("price_parser"),
    "price_parser.parser": lambda: import_module("price_parser.parser"),
    "pypdfium2": lambda: import_module("pypdfium2"),
    "pypdfium2.raw": lambda: import_module("pypdfium2.raw"),
    "tinycss2": lambda: import_module("tinycss2"),
    "tinycss2.color4": lambda: import_module("tinycss2.color4"),
    "trafilatura": lambda: import_module("trafilatura"),
    "webencodings": lambda: import_module("webencodings"),
}


def library(name: str) -> Any:
    """The module `name`; raises ConfigurationError where the extra is not installed."""
    try:
        return _MODULES[name]()
    except ImportError as error:
        needed = name.partition(".")[0]
        raise ConfigurationError(f"reading a page needs the library {needed}", hint="pip install 'pandora-dagster[web]'") from error
