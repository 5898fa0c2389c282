"""The compression settings (000 "Configuration"), each seen in what a house does with it; and the function for Python programs."""

import asyncio

import pytest

from pandora_dagster.contracts.calls import CallSite
from pandora_dagster.contracts.compression import Content
from pandora_dagster.contracts.words import ContentType
from pandora_dagster.errors import ConfigurationError, InputError
from pandora_dagster.execution.engine import SummarizationEngine
from pandora_dagster.settings import load_settings
from pandora_dagster.wiring import open_house
from pandora_dagster.wiring.compressing import compress_text
from tests.phases.rig import ScriptedRuntime, vocabulary

SITE = CallSite("tool_results", "anna")
FILLER = "We all talked about how nice the weather had been and what everybody was going to do at the weekend with their families."
TEXT = "\n\n".join(f"Chair CH{n}00X was sold for ${n}49.00 at store{n}.example.com. {FILLER}" for n in range(1, 80))


@pytest.fixture
def opened(tmp_path):
    """`opened(NAME="value")`: a house with these settings; closed when the test ends."""
    houses = []

    def build(runtime=None, **environ):
        settings = load_settings({"PANDORA_ROOT": str(tmp_path / f"store{len(houses)}"), **environ})
        houses.append(open_house(settings, runtime=runtime, counter=vocabulary()))
        return houses[-1]

    yield build
    for house in houses:
        house.close()


def settled(house):
    content = Content(TEXT, "section_2_whole.md", ContentType.GENERIC)
    return asyncio.run(house.kit.summarizer.settle_section(2, content, site=SITE))


def test_compression_enabled_switches_the_turns_compression(opened):
    """On: phases report to it and calls are fitted; off: neither, and a call over its budget halts."""
    assert opened().kit.summarizer is not None
    off = opened(COMPRESSION_ENABLED="false")
    assert off.kit.summarizer is None and off.kit.execution._fitting.fitter is None


@pytest.mark.parametrize(("share", "target"), [("0.9", 1_800), ("0.5", 1_000)])
def test_compression_threshold_is_how_far_a_section_goes(share, target, opened):
    """A share of the section's budget."""
    report = settled(opened(COMPRESSION_THRESHOLD=share)).report
    assert report.target == target and report.tokens_after <= target


@pytest.mark.parametrize(("least", "is_done"), [("500", True), ("5000", False)])
def test_min_compression_savings_decides_whether_it_is_worth_it(least, is_done, opened):
    """Too little to save: the section stays as it is."""
    assert bool(settled(opened(MIN_COMPRESSION_SAVINGS=least)).report) == is_done


@pytest.mark.parametrize(("ttl", "made"), [("300", 1), ("0", 2)])
def test_compression_cache_ttl_is_for_how_long_a_text_is_reused(ttl, made, opened):
    """Within it the second compression is none."""
    house = opened(COMPRESSION_CACHE_TTL=ttl)
    settled(house)
    settled(house)
    assert house.compression.log.metrics.compression_invocations == made


def test_compression_model_layer_is_always_nerves(opened):
    """Another layer is refused; every compression recipe and record says NERVES."""
    with pytest.raises(ConfigurationError, match="NERVES"):
        load_settings({"COMPRESSION_MODEL_LAYER": "MIND"})
    house = opened()
    layers = {house.cookbook.compressor(kind).recipe.model_layer for kind in ContentType}
    assert layers == {SummarizationEngine.MODEL_LAYER} and SummarizationEngine.MODEL_LAYER == "NERVES"


def test_with_a_model_its_runtime_compresses(opened):
    """The pieces are calls of the recipe of the text's type, to NERVES, by the executor."""
    runtime = ScriptedRuntime()
    runtime.script["compressor"] = [lambda pack: next(p.text for p in pack.parts if p.kind == "document").replace(FILLER, "")]
    report = settled(opened(runtime)).report
    assert report.runtime == "scripted" and {p.recipe for p in runtime.packs} == {"compress_generic"}
    assert {p.layer for p in runtime.packs} == {"NERVES"} and report.counts["missing"] == 0


def test_a_python_program_gets_what_the_command_prints():
    """`compress_text`: the same fields; wrong arguments are InputErrors."""
    answer = compress_text(TEXT, 800, id="chairs", settings=load_settings({}))
    assert answer["id"] == "chairs" and answer["tokens"] <= 800 and answer["facts"]["total"] > 100 and answer["halted"] is None
    with pytest.raises(InputError, match="at least 1"):
        compress_text(TEXT, 0, settings=load_settings({}))
    with pytest.raises(InputError, match="expected one of"):
        compress_text(TEXT, 5, type="poem", settings=load_settings({}))
