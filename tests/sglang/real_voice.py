"""A runtime whose answers for the user come from a real server, word by word, and all others from a script: a random model's JSON
rarely brings a turn to its end. CODE is `pandora api` with it, PROGRAM every other command."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandora_dagster.app as composition
from pandora_dagster.api.guard import Guard
from pandora_dagster.api.server import serve
from pandora_dagster.app import App, open_app
from pandora_dagster.cli.program import run
from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.settings import Settings, load_settings
from tests.fakes.model_runtimes import ScriptedRuntime
from tests.phases.rig import USUAL
from tests.phases.vocabulary import vocabulary
from tests.runtime.sglang_packs import endpoints
from tests.sglang.real_servers import CONTEXT

WORDS = 120
LONG = {"type": "array", "minItems": WORDS, "maxItems": WORDS, "items": {"enum": ["a chair?"]}}
"""What the model must write, so that its answer ends: it has no reason of its own to."""


@dataclass
class RealVoice(ScriptedRuntime):
    base_url: str = ""
    real: SglangRuntime = field(init=False)

    def __post_init__(self) -> None:
        self.real = SglangRuntime(endpoints(self.base_url, context_length=CONTEXT), keys={})

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        if pack.role != "synthesizer":
            return await super().complete(pack, timeout_s=timeout_s, on_words=on_words)
        written = replace(pack, output_format=OutputFormat.JSON, output_schema=LONG)
        return await self.real.complete(written, timeout_s=timeout_s, on_words=on_words)

    async def aclose(self) -> None:
        await self.real.aclose()


def opened(root: Path, base_url: str) -> App:
    return open_app(load_settings({"PANDORA_ROOT": str(root)}), runtime=RealVoice(USUAL, base_url=base_url), counter=vocabulary())


CODE = "from tests.sglang.real_voice import main; main()"


def main() -> None:
    """`api --port N`, over the store and the server that the environment names."""
    app = opened(Path(os.environ["PANDORA_ROOT"]), os.environ["REAL_VOICE"])
    try:
        serve(app, Guard("127.0.0.1"), port=int(sys.argv[sys.argv.index("--port") + 1]), on_ready=lambda _: None)
    finally:
        app.close()


PROGRAM = "from tests.sglang.real_voice import program; program()"


def program() -> None:
    """`pandora` as its arguments say, over the server that the environment names."""

    def with_voice(settings: Settings) -> App:
        return opened(settings.root, os.environ["REAL_VOICE"])

    composition.open_app = with_voice  # type: ignore[assignment]
    run()
