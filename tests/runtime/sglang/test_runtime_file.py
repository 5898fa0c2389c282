"""`runtime.yaml`: the shipped presets, and every fault with its line."""

from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.runtime.sglang.runtime_file import load_endpoints
from pandora_dagster.shipped import shipped_folder

SHIPPED = shipped_folder() / "data" / "runtime.yaml"
GOOD = """\
preset: p
presets:
  p:
    servers:
      one:
        base_url: http://127.0.0.1:30000/v1
        model: tiny
        context_length: 4096
    layers:
      REFLEX: {server: one, temperature: 0}
      NERVES: {server: one, temperature: 0.3}
      MIND: {server: one, temperature: 0.5}
      VOICE: {server: one, temperature: 0.7}
      EYES: {server: one, temperature: 0.2}
"""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "runtime.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def faults(folder: Path, text: str | bytes) -> list[str]:
    path = written(folder, text)
    with pytest.raises(ConfigurationError) as caught:
        load_endpoints(path)
    return [line.removeprefix(str(path)) for line in str(caught.value).splitlines()]


def test_the_shipped_file_puts_every_layer_on_one_server() -> None:
    """As shipped, one server answers for every layer, at the temperatures that the documents fix."""
    found = load_endpoints(SHIPPED)
    assert found.preset == "one-server" and found.source == "runtime.yaml"
    assert len({found[layer].server for layer in ModelLayer}) == 1
    assert (found[ModelLayer.NERVES].temperature, found[ModelLayer.MIND].temperature) == (0.3, 0.5)


def test_the_shipped_file_has_the_five_model_stack(tmp_path: Path) -> None:
    """The other preset has one loopback port a model, and plain text for the base model."""
    found = load_endpoints(written(tmp_path, SHIPPED.read_text().replace("preset: one-server", "preset: five-layers")))
    servers = {layer: found[layer].server for layer in ModelLayer}
    assert len({s.base_url for s in servers.values()}) == 5
    assert all(s.base_url.startswith("http://127.0.0.1:") for s in servers.values())
    assert [layer for layer, s in servers.items() if not s.chat] == [ModelLayer.NERVES]
    families = {
        "REFLEX": "Qwen3-0.6B",
        "NERVES": "Youtu-LLM-2B-Base",
        "MIND": "AWQ",
        "VOICE": "Llama-3.1-8B-Instruct",
        "EYES": "Qwen3-VL-8B",
    }
    assert all(family in servers[ModelLayer(layer)].model for layer, family in families.items())
    assert min(s.context_length for s in servers.values()) >= 12_000  # the largest shipped recipe budget


def test_a_trailing_slash_is_no_difference(tmp_path: Path) -> None:
    """An endpoint reads the same with and without its last slash."""
    found = load_endpoints(written(tmp_path, GOOD.replace("/v1", "/v1/")))
    assert found[ModelLayer.MIND].server.base_url == "http://127.0.0.1:30000/v1"


ROUTING = "{recipes: [a/b], larger: MIND, smaller: MIND, threshold: 4, factors: [{name: long, score: 1, query_over: 500}]}"
URL = "http://127.0.0.1:30000/v1"
WRONG = {
    "other scheme": (URL, "ftp://127.0.0.1/v1", 6, "base_url: 'ftp://127.0.0.1/v1': expected a URL such as"),
    "no host": (URL, "http:///v1", 6, "base_url: 'http:///v1': expected a URL"),
    "bad port": (URL, "http://127.0.0.1:99999/v1", 6, "base_url: 'http://127.0.0.1:99999/v1': expected a URL"),
    "no /v1": (URL, "http://127.0.0.1:30000", 6, "does not end in /v1"),
    "a query": (URL, "http://127.0.0.1/v1?key=1", 6, "expected a URL"),
    "no model": ("model: tiny", "model: ''", 7, "model: '': expected: string should have at least 1 character"),
    "text for a number": ("4096", "'4096'", 8, "context_length: '4096': expected: input should be a valid integer"),
    "small context": ("4096", "100", 8, "context_length: '100': expected: input should be greater than or equal to 512"),
    "unknown field": ("model: tiny", "model: tiny\n        colour: red", 8, "servers.one.colour: unknown field: expected none"),
    "missing field": ("        model: tiny\n", "", 5, "servers.one.model: missing: expected a value"),
    "unknown preset": ("preset: p\n", "preset: q\n", 1, "preset: 'q': expected one of p"),
    "unknown layer": ("EYES", "EARS", 14, "EARS"),
    "unknown server": ("MIND: {server: one", "MIND: {server: two", 3, "layers.MIND.server: 'two': expected one of one"),
    "hot": ("temperature: 0.7", "temperature: 7", 13, "VOICE.temperature: '7': expected: input should be less than or equal to 2"),
    "not a number": ("temperature: 0.7", "temperature: .nan", 13, "VOICE.temperature: .nan: expected a finite number"),
    "no places": ("temperature: 0.7", "temperature: 0.7, max_at_once: 0", 13, "max_at_once: '0': expected: input should be greater than"),
    "a rate in words": (
        "temperature: 0.7",
        "temperature: 0.7, per_minute: many",
        13,
        "per_minute: 'many': expected: input should be a valid",
    ),
    "a price below 0": (
        "temperature: 0.7",
        "temperature: 0.7, price: {input: -1, output: 2}",
        13,
        "price.input: '-1': expected: input should",
    ),
    "half a price": ("temperature: 0.7", "temperature: 0.7, price: {input: 1}", 13, "price.output: missing: expected a value"),
    "a copy that is no URL": ("model: tiny", "model: tiny\n        replicas: [here]", 8, "replicas.0: 'here': expected a URL such as"),
    "no patience": ("model: tiny", "model: tiny\n        patience_s: 0", 8, "patience_s: '0': expected: input should be greater than 0"),
    "a route to itself": (
        "    servers:",
        f"    routing: {ROUTING}\n    servers:",
        4,
        "larger and smaller are both MIND: expected two layers",
    ),
    "a factor without condition": (
        "    servers:",
        "    routing: " + ROUTING.replace("smaller: MIND", "smaller: VOICE").replace(", query_over: 500", "") + "\n    servers:",
        4,
        "long: no condition: expected one of mode, intents",
    ),
    "key twice": (
        "model: tiny",
        "model: tiny\n        model: big",
        8,
        "servers.one.model: duplicate key: expected once (first in",
    ),
    "not YAML": ("model: tiny", "model: [tiny", 8, "expected YAML"),
}


@pytest.mark.parametrize("case", WRONG)
def test_faults_have_their_line(case: str, tmp_path: Path) -> None:
    """Each fault names file, line, field, and what was expected."""
    old, new, line, message = WRONG[case]
    assert old in GOOD
    found = faults(tmp_path, GOOD.replace(old, new, 1))
    assert any(fault.startswith(f":{line}: ") and message in fault for fault in found), found


def test_all_faults_at_once(tmp_path: Path) -> None:
    """A file's faults are reported together."""
    text = GOOD.replace("4096", "1").replace("temperature: 0.7", "temperature: 7").replace("model: tiny", "model: 3")
    assert [fault.split(":")[1] for fault in faults(tmp_path, text)] == ["7", "8", "13"]


def test_a_missing_layer_is_named(tmp_path: Path) -> None:
    """A preset without a layer says which."""
    (fault,) = faults(tmp_path, GOOD.replace("      EYES: {server: one, temperature: 0.2}\n", ""))
    assert "layers: EYES missing: expected all of REFLEX" in fault


@pytest.mark.parametrize(
    "line",
    ["api_key: sk-secret", "api_key_env: sk-secret", "base_url: http://me:sk-secret@127.0.0.1/v1", "token: sk-secret", "sk-secret"],
)
def test_a_key_in_the_file_is_refused_and_not_repeated(line: str, tmp_path: Path) -> None:
    """A credential written into the file is a fault, and no message shows it."""
    text = GOOD.replace("base_url: http://127.0.0.1:30000/v1", line) if line.startswith("base") else GOOD.replace("model: tiny", line)
    assert "sk-secret" not in "\n".join(faults(tmp_path, text))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":1: empty file: expected text"),
        ("# nothing\n", ":1: not a mapping: expected `field: value` lines"),
        ("- a\n", ":1: not a mapping"),
        (b"preset: \xff\n", ":1: byte 8 is not UTF-8"),
        (b"a: " + b"x" * 1_000_001, ":1: 1000004 bytes: expected at most 262144"),
        ("preset: *nothing\n", ":1: preset: an alias: expected the value itself"),
        ("preset: !!python/object:os.system x\npresets: {}\n", ":1: preset: a value with the tag"),
        ("preset: &p one\npresets: *p\n", ":2: presets: an alias: expected the value itself"),
    ],
)
def test_what_is_no_runtime_file(content: str | bytes, message: str, tmp_path: Path) -> None:
    """Empty, other YAML, other encodings and other sizes are reported in one sentence."""
    assert faults(tmp_path, content)[0].startswith(message)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """A missing file is reported with its path."""
    with pytest.raises(ConfigurationError, match="cannot be read: No such file or directory: expected a file"):
        load_endpoints(tmp_path / "runtime.yaml")


def test_limits_prices_copies_and_a_route(tmp_path: Path) -> None:
    """What a file may say beside servers and layers, all optional."""
    text = GOOD.replace("temperature: 0.7", "temperature: 0.7, max_at_once: 2, per_minute: 30, price: {input: 3, cached: 0.3, output: 15}")
    text = text.replace("model: tiny", "model: tiny\n        replicas: [http://127.0.0.1:30001/v1/]\n        priorities: true")
    text = text.replace("    servers:", "    routing: " + ROUTING.replace("smaller: MIND", "smaller: VOICE") + "\n    servers:")
    found = load_endpoints(written(tmp_path, text))
    voice = found[ModelLayer.VOICE]
    assert (voice.max_at_once, voice.per_minute) == (2, 30) and found[ModelLayer.MIND].max_at_once is None
    assert [one.base_url for one in voice.server.addresses] == ["http://127.0.0.1:30000/v1", "http://127.0.0.1:30001/v1"]
    assert voice.server.priorities and all(one.replicas == () for one in voice.server.addresses)
    assert set(found.prices) == {ModelLayer.VOICE} and found.routing is not None and found.routing.threshold == 4
    assert load_endpoints(written(tmp_path, GOOD)).routing is None
