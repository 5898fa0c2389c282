"""What is known before a server is started: its command, the models' sizes, whether all fit."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import CallRequest, CallSite
from pandora_dagster.documents.plain_yaml import read_yaml
from pandora_dagster.execution.call.executor import LARGER_LAYER
from pandora_dagster.execution.call.layer_routing import choose_layer
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.runtime.serving.launch_command import Service, full_command, server_environment, services
from pandora_dagster.runtime.serving.machine_inventory import model_folder, model_size, parse_gpus, token_bytes
from pandora_dagster.runtime.serving.memory_plan import GB, Gpu, ModelSize, memory_plan, static_memory_fraction
from pandora_dagster.runtime.sglang.concurrency_limit import ServerLoad, parse_load
from pandora_dagster.runtime.sglang.endpoints import Endpoints, RuntimeFile, select_endpoints
from pandora_dagster.runtime.sglang.runtime_file import load_endpoints
from pandora_dagster.shipped import shipped_folder

LAYERS = ("REFLEX", "NERVES", "MIND", "VOICE", "EYES")


def endpoints(servers: dict[str, dict[str, Any]], *, embeddings: str | None = None) -> Endpoints:
    """Servers by name, each `launch` block with what else is reported of the server; every layer on the first."""
    fields = {
        name: {"base_url": f"http://127.0.0.1:{30_000 + n}/v1", "model": name, "context_length": 4_096, **server}
        for n, (name, server) in enumerate(servers.items())
    }
    use = {layer: {"server": next(iter(servers)), "temperature": 0} for layer in LAYERS}
    preset = {"servers": fields, "layers": use, **({"embeddings": embeddings} if embeddings else {})}
    return select_endpoints(RuntimeFile.model_validate({"preset": "p", "presets": {"p": preset}}), source="runtime.yaml")


def made(launch: dict[str, Any] | None = None, **server: Any) -> Service:
    return services(endpoints({"one": {"launch": launch or {}, **server}}), python="/sg/bin/python")[0]


def test_the_command() -> None:
    """The default interpreter, the model's name as its path, and what every call relies on."""
    assert full_command(made({"memory_fraction": 0.4}, model="Qwen/Qwen3-0.6B"), 0.5) == (
        *("/sg/bin/python", "-m", "sglang.launch_server", "--model-path=Qwen/Qwen3-0.6B", "--served-model-name=Qwen/Qwen3-0.6B"),
        *("--host=127.0.0.1", "--port=30000", "--context-length=4096"),
        *("--uvicorn-access-log-exclude-prefixes", "/health", "/metrics"),
        *("--enable-cache-report", "--enable-metrics", "--constrained-json-disable-any-whitespace", "--mem-fraction-static=0.500"),
    )


def test_what_a_launch_block_changes() -> None:
    """A command of one's own, a model's folder, several GPUs, further options."""
    service = made(
        {"command": ["env", "X=1", "~/run"], "model_path": "/m", "gpus": [2, 3], "options": ["--tokenizer-mode", "slow", "--n", 2]}
    )
    assert service.command[:4] == ("env", "X=1", str(Path("~/run").expanduser()), "--model-path=/m")
    assert service.command[-5:] == ("--tp-size=2", "--tokenizer-mode", "slow", "--n", "2")
    assert service.variables == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "2,3"}
    assert full_command(service, None) == service.command and service.gpus == (2, 3)
    assert services(endpoints({"one": {"launch": {}}}), python="p", first_gpu=5)[0].gpus == (5,)


def test_embeddings() -> None:
    """An embedding server is reported what it is."""
    both = services(endpoints({"one": {"launch": {}}, "vectors": {"launch": {}}}, embeddings="vectors"), python="p")
    assert both[1].layers == ("embeddings",) and both[1].command[-1] == "--is-embedding"
    assert [s.name for s in services(endpoints({"one": {}, "two": {"launch": {}}}), python="p")] == ["two"]


def test_the_environment_of_a_server() -> None:
    """It inherits the machine's, and neither this interpreter's nor anybody's key; the interpreter's folder comes first."""
    own = {"PATH": "/usr/bin", "HOME": "/h", "HF_TOKEN": "t", "PYTHONPATH": "/x", "PANDORA_ROOT": "/r", "OPENAI_API_KEY": "secret"}
    assert server_environment(made(), own) == {"PATH": "/sg/bin:/usr/bin", "HOME": "/h", "HF_TOKEN": "t"}


def test_no_credential_of_another_service_reaches_a_server() -> None:
    """Whatever ends as credentials do, or is one by its name; what only sounds so stays, and so does what a gated model is loaded with."""
    secrets = (
        "GITHUB_TOKEN AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN DB_PASSWORD PGPASSWORD MYSQL_PWD CLIENT_SECRET npm_token TOKEN api_key_prod"
    )
    secrets += " GOOGLE_APPLICATION_CREDENTIALS SMTP_PASS SSH_PASSPHRASE"
    kept = "PWD OLDPWD TOKENIZERS_PARALLELISM MAX_TOKENS KEYBOARD HF_HOME HF_TOKEN HUGGING_FACE_HUB_TOKEN CUDA_HOME HTTPS_PROXY LANG"
    own = dict.fromkeys(f"{secrets} {kept}".split(), "x")
    assert set(server_environment(made(), own)) == {"PATH", *kept.split()}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "another machine": ({"base_url": "http://10.0.0.1:30000/v1", "launch": {}}, "expected this machine and a port"),
    "no port": ({"base_url": "http://127.0.0.1/v1", "launch": {}}, "expected this machine and a port"),
    "https": ({"base_url": "https://127.0.0.1:1/v1", "launch": {}}, "expected this machine and a port"),
    "a key": ({"api_key_env": "MY_KEY", "launch": {}}, "api_key_env: expected none"),
    "a key on the command line": ({"launch": {"options": ["--api-key=x"]}}, "expected no key here"),
    "a port twice": ({"launch": {"options": ["--port", "1"]}}, "expected in the server's own fields"),
    "two ways": ({"launch": {"python": "p", "command": ["c"]}}, "expected one of them"),
    "a GPU twice": ({"launch": {"gpus": [0, 0]}}, "expected each GPU once"),
    "all the memory": ({"launch": {"memory_fraction": 1.0}}, "less than 1"),
    "unknown": ({"launch": {"cool": True}}, "Extra inputs"),
    "no command": ({"launch": {"command": []}}, "at least 1 item"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_launch_block(case: str) -> None:
    """Each fault is reported; a key is never repeated."""
    server, message = WRONG[case]
    with pytest.raises(ValidationError, match=message) as caught:
        endpoints({"one": server})
    assert "--api-key=x" not in str(caught.value.errors(include_input=False, include_context=False))


def test_servers_that_would_get_in_each_others_way() -> None:
    """Two servers have two ports and names that can be files."""
    with pytest.raises(ValidationError, match="port 30000 is that of one"):
        endpoints({"one": {"launch": {}}, "two": {"launch": {}, "base_url": "http://localhost:30000/v1"}})
    with pytest.raises(ValidationError, match="named after it"):
        endpoints({"../one": {"launch": {}}})
    with pytest.raises(ValidationError, match="a search does not wait"):
        endpoints({"one": {}, "vectors": {"launch": {"cold": True}}}, embeddings="vectors")


CARD = Gpu(0, "Card", 80 * GB, 79 * GB)


def planned(*launches: dict[str, Any], gpus: tuple[Gpu, ...] = (CARD,), size: ModelSize | None = None) -> Any:
    fields = services(endpoints({f"s{n}": {"launch": launch} for n, launch in enumerate(launches)}), python="p")
    return memory_plan(fields, {s.name: size or ModelSize(10 * GB, 100_000, "files") for s in fields}, gpus)


def test_models_that_fit() -> None:
    """Their shares, weights and room are reported: what the weights leave of a share, in tokens."""
    plan = planned({"memory_fraction": 0.5}, {"memory_fraction": 0.25})
    assert plan.faults == () and plan.notes == ()
    assert [row.cache_tokens for row in plan.rows] == [300_000, 100_000]


TOO_MUCH: dict[str, tuple[Any, str]] = {
    "over one": (
        planned({"memory_fraction": 0.6}, {"memory_fraction": 0.5}),
        "s0 0.6 + s1 0.5 = 1.10 of its memory: lower memory_fraction",
    ),
    "not said": (planned({"memory_fraction": 0.6}, {}), "s1 would take what is free: give each a memory_fraction"),
    "weights": (planned({"memory_fraction": 0.1}), "s0: 10.0 GB of weights are over its share: raise memory_fraction"),
    "context": (planned({"memory_fraction": 0.129}), "s0: its KV cache holds 3,200 tokens, a request 4,096: lower context_length"),
    "no such GPU": (planned({"gpus": [3]}), "s0: gpus: 3: this machine has 0"),
    "somebody else": (
        planned({"memory_fraction": 0.5}, gpus=(Gpu(0, "Card", 80 * GB, 30 * GB),)),
        "30.0 of 80.0 GB are free, 40.0 are asked for: end what else runs there",
    ),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_models_that_do_not_fit(case: str) -> None:
    """One sentence says what does not fit, and what to do."""
    plan, message = TOO_MUCH[case]
    assert len(plan.faults) == 1 and message in plan.faults[0]


def test_what_is_not_known_is_reported() -> None:
    """Without a GPU, weights or config nothing is claimed."""
    assert planned({"memory_fraction": 0.9}, gpus=()).notes == ("no GPU found by nvidia-smi: whether the models fit was not checked",)
    assert "weights_gb in its launch block" in planned({}, size=ModelSize()).notes[0]
    fields = planned({"weights_gb": 100, "memory_fraction": 0.5}, size=ModelSize(None, 100_000))
    assert "100.0 GB of weights" in fields.faults[0]
    alone = planned({"weights_gb": 100, "memory_fraction": 0.5}, size=ModelSize())
    assert "100.0 GB of weights are over its share" in alone.faults[0], "told by their size alone"
    assert "was not checked" in planned({"memory_fraction": 0.5}, size=ModelSize(GB)).notes[0]
    assert "leave 0.8 GB" in planned({"memory_fraction": 0.99}, gpus=(Gpu(0, "Card", 80 * GB, 80 * GB),)).notes[0]


def test_two_gpus_hold_one_model() -> None:
    """A model on two GPUs has both shares."""
    assert planned({"gpus": [0, 1], "memory_fraction": 0.5}, gpus=(CARD, Gpu(1, "Card", 80 * GB, 80 * GB))).rows[0].cache_tokens == 700_000


@pytest.mark.parametrize(
    ("share", "free", "fields"),
    [(0.5, 80, 0.5), (0.5, 60, 0.6667), (0.25, 20, 0.98), (None, 60, None)],
    ids=["empty", "shared", "full", "own"],
)
def test_the_fraction_that_a_server_is_reported(share: float | None, free: int, fields: float | None) -> None:
    """A share of the whole is reported as one of what is free at the start, as SGLang takes it."""
    assert static_memory_fraction(share, Gpu(0, "Card", 80 * GB, free * GB)) == (
        None if fields is None else pytest.approx(fields, abs=1e-4)
    )


TOKEN_BYTES = {
    "Qwen/Qwen3-0.6B": 2 * 28 * 8 * 128 * 2,
    "QuantTrio/Qwen3-Coder-30B-A3B-Instruct-AWQ": 2 * 48 * 4 * 128 * 2,
    "meta-llama/Llama-3.1-8B-Instruct": 2 * 32 * 8 * 128 * 2,
    "Qwen/Qwen3-VL-8B-Instruct": 2 * 36 * 8 * 128 * 2,
    "Qwen/Qwen3-VL-8B-Instruct-FP8": 2 * 36 * 8 * 128 * 2,
}
"""Keys and values of one token, by layers, key-value heads and head size of each model's config.json, at two bytes."""
PRESETS = {
    "one-server": (Gpu(0, "RTX 4090", 24_564 * 2**20, 24_200 * 2**20), 1),
    "two-models-24gb": (Gpu(0, "RTX 4090", 24_564 * 2**20, 24_200 * 2**20), 2),
    "three-models-48gb": (Gpu(0, "L40S", 46_068 * 2**20, 45_600 * 2**20), 3),
    "five-layers": (Gpu(0, "A100", 81_920 * 2**20, 81_000 * 2**20), 5),
}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_shipped_preset_fits_the_gpu_that_it_names(preset: str) -> None:
    """Weights, KV cache of a whole request and what servers take beside their shares, by the sizes that the file states."""
    gpu, number = PRESETS[preset]
    fields = services(_shipped(preset), python="p")
    sizes = {service.name: ModelSize(None, TOKEN_BYTES.get(service.server.model)) for service in fields}
    plan = memory_plan(fields, sizes, (gpu,))
    assert plan.faults == () and len(plan.rows) == number
    unmeasured = [row.service.server.model for row in plan.rows if row.cache_tokens is None]
    assert unmeasured == (["tencent/Youtu-LLM-2B-Base"] if preset == "five-layers" else [])
    assert not any("leave" in note for note in plan.notes)
    cold = [row.service.name for row in plan.rows if row.service.launch.cold]
    assert cold == (["eyes"] if preset == "five-layers" else [])


def test_an_escalation_reaches_another_model_in_every_preset_of_several() -> None:
    """The larger layer of the smallest one is served by a larger model; one preset routes answers between two models."""
    for preset in ("two-models-24gb", "three-models-48gb", "five-layers"):
        shipped = _shipped(preset)
        assert shipped[ModelLayer.REFLEX].server.model != shipped[LARGER_LAYER[ModelLayer.REFLEX]].server.model
    routing = _shipped("three-models-48gb").routing
    assert routing is not None and set(routing.recipes) <= set(open_recipes().names())
    request = CallRequest("pipeline/phase5_synthesizer_chat", "hi", CallSite("answer", "me"))
    for intent, layer in (("commerce", ModelLayer.MIND), ("greeting", ModelLayer.VOICE)):
        assert choose_layer(routing, replace(request, intent=intent), request.recipe, ModelLayer.VOICE)[0] is layer


@pytest.mark.parametrize("preset", PRESETS)
def test_the_layer_for_images_reads_images(preset: str) -> None:
    """In every shipped preset: a call with images is refused where its server does not say so."""
    server = _shipped(preset)[ModelLayer.EYES].server
    assert server.images and server.chat and "VL" in server.model


def _shipped(preset: str) -> Endpoints:
    text = (shipped_folder() / "data" / "runtime.yaml").read_text()
    return select_endpoints(RuntimeFile.model_validate(_parsed(text) | {"preset": preset}), source="runtime.yaml")


def _parsed(text: str) -> dict[str, Any]:
    return read_yaml(text).fields


def test_nvidia_smi() -> None:
    """Its lines as they come, and nothing of a GPU that does not tell."""
    listed = "0, NVIDIA H200, 143771, 143156\n1, NVIDIA GB10, [N/A], [N/A]\n\nFailed to initialize NVML\n2, A, B, 1024, 512\n"
    assert parse_gpus(listed) == (Gpu(0, "NVIDIA H200", 143_771 * 2**20, 143_156 * 2**20), Gpu(2, "A, B", 2**30, 2**29))


QWEN = {"num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 4_096}
CONFIGS: dict[str, tuple[dict[str, Any], dict[str, int], int | None]] = {
    "plain": (QWEN, {}, 2 * 36 * 8 * 128 * 2),
    "inside": ({"text_config": QWEN}, {}, 2 * 36 * 8 * 128 * 2),
    "no head_dim": ({k: v for k, v in QWEN.items() if k not in ("head_dim", "num_key_value_heads")}, {}, 2 * 36 * 32 * 128 * 2),
    "eight bits": (QWEN, {"value_bytes": 1}, 2 * 36 * 8 * 128),
    "more GPUs than heads": (QWEN, {"gpus": 16}, 2 * 36 * 16 * 128 * 2),
    "latent": (QWEN | {"kv_lora_rank": 512}, {}, None),
    "hybrid": (QWEN | {"layer_types": ["full_attention", "linear_attention"]}, {}, None),
    "nothing": ({}, {}, None),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_what_a_token_takes(case: str) -> None:
    """Keys and values of every layer, where the config tells them; None where the model keeps something else."""
    config, fields, expected = CONFIGS[case]
    assert token_bytes(config, **fields) == expected


def test_a_models_files(tmp_path: Path) -> None:
    """Weights are what the index names, wherever Hugging Face keeps them; a second copy does not count."""
    kept = tmp_path / "hub" / "models--org--m"
    folder = kept / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc")
    for name, size in (("model-1.safetensors", 700), ("model-2.safetensors", 300), ("consolidated.safetensors", 1_000)):
        (folder / name).write_bytes(b"x" * size)
    (folder / "config.json").write_text(json.dumps(QWEN))
    service, where = made(model="org/m"), {"home": tmp_path, "variables": {"HF_HUB_CACHE": str(tmp_path / "hub")}}
    assert model_size(service, **where) == ModelSize(1_000, 147_456, str(folder))
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model-1.safetensors"}})
    )
    assert model_size(service, **where).weights == 700
    assert model_folder("org/m", home=tmp_path, variables={"HF_HOME": str(tmp_path)}) == folder
    assert model_folder(str(folder), home=tmp_path, variables={}) == folder
    assert model_size(made(model="org/other"), **where) == ModelSize()


def test_requests_in_metrics() -> None:
    """Running and queued ones; None where nothing is reported."""
    lines = b'# HELP sglang:num_running_reqs x\nsglang:num_running_reqs{a="b"} 2.0\nsglang:num_queue_reqs{a="b"} 3.0\nother 7\n'
    assert parse_load(lines) == ServerLoad(2, 3)
    assert parse_load(b"other 7\n") is None and parse_load(b"sglang:num_queue_reqs x\n") is None


def test_the_shipped_file_is_launched_here() -> None:
    """As shipped, `pandora serve` has one server to start."""
    found = services(load_endpoints(shipped_folder() / "data" / "runtime.yaml"), python="p")
    assert [s.layers for s in found] == [LAYERS]
