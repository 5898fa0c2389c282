"""How much of what a recipe's calls share comes from the server's prefix cache."""

from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from statistics import mean

from benchmarks.sglang_requests import Recorded, executor_over, fresh, served_tokens
from benchmarks.sglang_rows import Row
from pandora_dagster.contracts.model_calls import CallRequest, PromptPack
from tests.sglang.real_servers import RealSglang
from tests.sglang.test_recipes import NAMES, request_of

WANTED = 0.98
_CALLS = 4


async def cache_rows(server: RealSglang, root: Path) -> list[Row]:
    """Every shipped recipe: a first call, then further ones over other documents and queries, one after the other."""
    shares: dict[str, float] = {}
    async with fresh(server) as runtime:
        recorded = Recorded(runtime)
        executor = executor_over(recorded, root)
        for name in NAMES:
            recorded.packs.clear()
            recorded.cached.clear()
            for number in range(_CALLS):
                await executor.attempt(_over_other_input(request_of(name), number))
            static = await _static(server, recorded.packs[0])
            shares[name] = min(min(1.0, cached / static) for cached in recorded.cached[1:])
    worst = min(shares, key=lambda name: shares[name])
    measured = f"{shares[worst]:.1%} ({worst}), {mean(shares.values()):.1%} over all {len(shares)} recipes"
    what = "role, policy and schema from the prefix cache, at second and later calls of the recipe that has the least"
    return [Row(what, measured, f"at least {WANTED:.0%}", shares[worst] >= WANTED)]


def _over_other_input(request: CallRequest, number: int) -> CallRequest:
    """The call with another query, and every document another from its first sentence on."""
    documents = [replace(document, text=document.text.replace("chair", f"chair {number}")) for document in request.documents]
    return replace(request, query=f"({number}) {request.query}", documents=tuple(documents))


async def _static(server: RealSglang, pack: PromptPack) -> int:
    """Tokens of what all calls of the recipe begin with, as the server reads it: where two prompts with other input part."""
    one, other = [await served_tokens(server, pack.system, text) for text in ("a", "b")]
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=True)))
