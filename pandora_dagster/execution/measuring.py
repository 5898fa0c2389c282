"""Whether a pack fits the served model, by that model's own count (DECISIONS 22). Knows the runtime port; changes no pack."""

from dataclasses import dataclass

from pandora_dagster.contracts.calls import PromptPack
from pandora_dagster.contracts.ports import ModelRuntime
from pandora_dagster.execution.correction import TEMPLATE_TOKENS


@dataclass(frozen=True, slots=True)
class PackSizeCheck:
    """Asks the runtime only where the pack could be over: no tokenizer has more tokens than bytes."""

    runtime: ModelRuntime

    async def served_tokens_if_over(self, pack: PromptPack, *, room: int | None) -> int | None:
        """The model's tokens of `pack` where they are over `room`; None where it fits, and where nobody can say."""
        if room is None or _bytes(pack) + TEMPLATE_TOKENS <= room:
            return None
        served = await self.runtime.count(pack)
        return served if served is not None and served > room else None


def _bytes(pack: PromptPack) -> int:
    return sum(len(text.encode(errors="surrogatepass")) for text in (pack.system, pack.user))
