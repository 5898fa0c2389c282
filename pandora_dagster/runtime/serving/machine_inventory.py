"""What is on this machine: its GPUs as `nvidia-smi` lists them, and the sizes of the models on its disk."""

import itertools
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from pandora_dagster.documents.plain_json import PlainDataError, parse_json_object
from pandora_dagster.runtime.serving.launch_command import Service
from pandora_dagster.runtime.serving.memory_plan import Gpu, ModelSize

_MIB = 2**20
_NVIDIA_SMI = ("nvidia-smi", "--query-gpu=index,name,memory.total,memory.free", "--format=csv,noheader,nounits")
_NVIDIA_SMI_TIMEOUT_S = 20
_MAX_JSON_BYTES = 16 * _MIB
_MIXED_LAYER_KEYS = ("kv_lora_rank", "sliding_window_pattern", "linear_num_key_heads", "hybrid_override_pattern", "mamba_d_state")
"""Keys in `config.json` of models that cache something other than the keys and values of every layer."""


def gpus() -> tuple[Gpu, ...]:
    """The GPUs of this machine; empty where there is no `nvidia-smi`, or it finds none."""
    try:
        query = subprocess.run(_NVIDIA_SMI, capture_output=True, text=True, timeout=_NVIDIA_SMI_TIMEOUT_S, check=False)  # noqa: S603 - fixed words
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return parse_gpus(query.stdout) if query.returncode == 0 else ()


def parse_gpus(output: str) -> tuple[Gpu, ...]:
    """The GPUs of nvidia-smi's lines `0, NVIDIA H200, 143771, 143156` (index, name, total and free MiB); without those of unknown size."""
    machine_gpus: list[Gpu] = []
    for line in output.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) >= 4 and parts[0].isdigit() and parts[-2].isdigit() and parts[-1].isdigit():
            machine_gpus.append(Gpu(int(parts[0]), ", ".join(parts[1:-2]), int(parts[-2]) * _MIB, int(parts[-1]) * _MIB))
    return tuple(machine_gpus)


def model_size(service: Service, *, home: Path, variables: Mapping[str, str]) -> ModelSize:
    """The size of a service's model by the files in its folder, or in the cache of Hugging Face."""
    folder = model_folder(service.launch.model_path or service.server.model, home=home, variables=variables)
    if folder is None:
        return ModelSize()
    weights = sum(path.stat().st_size for path in _weight_files(folder))
    config, value_bytes = _read_json(folder / "config.json"), _kv_value_bytes(service.launch.options)
    bytes_per_token = token_bytes(config, value_bytes=value_bytes, gpus=len(service.gpus))
    return ModelSize(weights or None, bytes_per_token, str(folder))


def model_folder(path: str, *, home: Path, variables: Mapping[str, str]) -> Path | None:
    """The folder of the model's files: a path, or a repository in the cache of Hugging Face; None where it is not on this machine."""
    local = Path(path).expanduser() if path.startswith("~/") else Path(path)
    if local.is_dir():
        return local
    hub = variables.get("HF_HUB_CACHE") or (f"{variables['HF_HOME']}/hub" if variables.get("HF_HOME") else f"{home}/.cache/huggingface/hub")
    repository = Path(hub) / f"models--{path.replace('/', '--')}"
    try:
        revision = (repository / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError, ValueError):
        return None
    folder = repository / "snapshots" / revision
    return folder if revision and folder.is_dir() else None


def _weight_files(folder: Path) -> list[Path]:
    """The safetensors files that a server loads: those of the index, or all but a second, consolidated copy."""
    index = _read_json(folder / "model.safetensors.index.json").get("weight_map")
    if isinstance(index, dict):
        file_names = {str(name) for name in cast("dict[str, object]", index).values()}
        return [path for name in sorted(file_names) if (path := folder / Path(name).name).is_file()]
    all_files = sorted(folder.glob("*.safetensors"))
    return [path for path in all_files if not path.name.startswith("consolidated")] or all_files


def token_bytes(config: Mapping[str, object], *, value_bytes: int = 2, gpus: int = 1) -> int | None:
    """Bytes of one token's keys and values over all layers and GPUs; None where `config.json` does not state them."""
    nested = config.get("text_config")
    text_config = cast("Mapping[str, object]", nested) if isinstance(nested, dict) else config
    layer_types = text_config.get("layer_types")
    if any(text_config.get(key) for key in _MIXED_LAYER_KEYS) or (
        isinstance(layer_types, list) and set(cast("list[str]", layer_types)) != {"full_attention"}
    ):
        return None
    layers, heads, hidden_size = (
        _positive_integer(text_config, key) for key in ("num_hidden_layers", "num_attention_heads", "hidden_size")
    )
    kv_heads = _positive_integer(text_config, "num_key_value_heads") or heads
    head_size = _positive_integer(text_config, "head_dim") or (hidden_size // heads if hidden_size and heads else None)
    if not layers or not kv_heads or not head_size:
        return None
    return 2 * layers * max(kv_heads, gpus) * head_size * value_bytes  # keys and values; a head that several GPUs need is on each of them


def _kv_value_bytes(options: Sequence[str]) -> int:
    """Bytes of one number in the KV cache by the server's options."""
    words = " ".join(options).replace("=", " ").split()
    cache_type = dict(itertools.pairwise(words)).get("--kv-cache-dtype", "")
    return 1 if cache_type.startswith("fp8") else 2


def _positive_integer(config: Mapping[str, object], key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) and value > 0 else None


def _read_json(path: Path) -> dict[str, object]:
    """A JSON object, empty where the file holds none."""
    try:
        if path.stat().st_size > _MAX_JSON_BYTES:
            return {}
        return parse_json_object(path.read_bytes())
    except (OSError, PlainDataError):
        return {}
