"""GPUs of this machine as `nvidia-smi` lists them, and model files on its disk. Reads; changes nothing."""

import itertools
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from pandora_dagster.runtime.serving.launch_command import Service
from pandora_dagster.runtime.serving.memory_plan import Gpu, ModelSize

_MIB = 2**20
_QUERY = ("nvidia-smi", "--query-gpu=index,name,memory.total,memory.free", "--format=csv,noheader,nounits")
_LARGEST_JSON = 16 * _MIB
_MIXED_LAYER_KEYS = ("kv_lora_rank", "sliding_window_pattern", "linear_num_key_heads", "hybrid_override_pattern", "mamba_d_state")
"""Models that keep something else than keys and values of every layer."""


def gpus() -> tuple[Gpu, ...]:
    """The GPUs of this machine; empty where there is no `nvidia-smi`, or it finds none."""
    try:
        asked = subprocess.run(_QUERY, capture_output=True, text=True, timeout=20, check=False)  # noqa: S603 - fixed words
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return parse_gpus(asked.stdout) if asked.returncode == 0 else ()


def parse_gpus(listed: str) -> tuple[Gpu, ...]:
    """GPUs of nvidia-smi's lines `0, NVIDIA H200, 143771, 143156` (MiB); one whose memory is unknown is left out."""
    found: list[Gpu] = []
    for line in listed.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) >= 4 and parts[0].isdigit() and parts[-2].isdigit() and parts[-1].isdigit():
            found.append(Gpu(int(parts[0]), ", ".join(parts[1:-2]), int(parts[-2]) * _MIB, int(parts[-1]) * _MIB))
    return tuple(found)


def model_size(service: Service, *, home: Path, variables: Mapping[str, str]) -> ModelSize:
    """The size of a service's model from its folder, or from where Hugging Face keeps what it fetched."""
    folder = model_folder(service.launch.model_path or service.server.model, home=home, variables=variables)
    if folder is None:
        return ModelSize()
    weights = sum(path.stat().st_size for path in _weight_files(folder))
    heads_apart = len(service.gpus)
    token = token_bytes(_read(folder / "config.json"), kv_bytes=_kv_bytes(service.launch.options), gpus=heads_apart)
    return ModelSize(weights or None, token, str(folder))


def model_folder(path: str, *, home: Path, variables: Mapping[str, str]) -> Path | None:
    """Where the model's files lie, None where they are not here yet."""
    local = Path(path).expanduser() if path.startswith("~/") else Path(path)
    if local.is_dir():
        return local
    hub = variables.get("HF_HUB_CACHE") or (f"{variables['HF_HOME']}/hub" if variables.get("HF_HOME") else f"{home}/.cache/huggingface/hub")
    kept = Path(hub) / f"models--{path.replace('/', '--')}"
    try:
        revision = (kept / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError, ValueError):
        return None
    folder = kept / "snapshots" / revision
    return folder if revision and folder.is_dir() else None


def _weight_files(folder: Path) -> list[Path]:
    """The safetensors that are loaded: those of the index where there is one; a second, consolidated copy is none of them."""
    index = _read(folder / "model.safetensors.index.json").get("weight_map")
    if isinstance(index, dict):
        named = {str(name) for name in cast("dict[str, object]", index).values()}
        return [path for name in sorted(named) if (path := folder / Path(name).name).is_file()]
    every = sorted(folder.glob("*.safetensors"))
    return [path for path in every if not path.name.startswith("consolidated")] or every


def token_bytes(config: Mapping[str, object], *, kv_bytes: int = 2, gpus: int = 1) -> int | None:
    """Bytes of one token's keys and values over all layers and GPUs; None where `config.json` does not state them."""
    nested = config.get("text_config")
    text = cast("Mapping[str, object]", nested) if isinstance(nested, dict) else config
    kinds = text.get("layer_types")
    if any(text.get(word) for word in _MIXED_LAYER_KEYS) or (
        isinstance(kinds, list) and set(cast("list[str]", kinds)) != {"full_attention"}
    ):
        return None
    layers, heads, width = (_number(text, word) for word in ("num_hidden_layers", "num_attention_heads", "hidden_size"))
    kv_heads = _number(text, "num_key_value_heads") or heads
    head = _number(text, "head_dim") or (width // heads if width and heads else None)
    if not layers or not kv_heads or not head:
        return None
    return 2 * layers * max(kv_heads, gpus) * head * kv_bytes  # a head that several GPUs need is on each


def _kv_bytes(options: Sequence[str]) -> int:
    words = " ".join(options).replace("=", " ").split()
    cache_type = dict(itertools.pairwise(words)).get("--kv-cache-dtype", "")
    return 1 if cache_type.startswith("fp8") else 2


def _number(config: Mapping[str, object], word: str) -> int | None:
    value = config.get(word)
    return value if isinstance(value, int) and value > 0 else None


def _read(path: Path) -> dict[str, object]:
    """A JSON object, empty where the file holds none."""
    try:
        if path.stat().st_size > _LARGEST_JSON:
            return {}
        parsed: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, object]", parsed) if isinstance(parsed, dict) else {}
