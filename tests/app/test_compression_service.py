"""The compression settings (000 "Configuration"), each seen in what a house does with it; and the function for Python programs."""

import asyncio
import json

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.app.compression_service import compress_text
from pandora_dagster.compression.numbered_units import read_numbered
from pandora_dagster.contracts.compression_results import CompressionInput, CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.model_calls import CallSite
from pandora_dagster.errors import ConfigurationError, InputError
from pandora_dagster.settings import load_settings
from tests.phases.rig import scripted_runtime
from tests.phases.vocabulary import vocabulary

SITE = CallSite("tool_results", "anna")
FILLER = "We all talked about how nice the weather had been and what everybody was going to do at the weekend with their families."
TEXT = "\n\n".join(f"Chair CH{n}00X was sold for ${n}49.00 at store{n}.example.com. {FILLER}" for n in range(1, 80))


@pytest.fixture
def opened(tmp_path):
    """`opened(NAME="value")`: a house with these settings; closed when the test ends."""
    houses = []

    def build(runtime=None, **environ):
        settings = load_settings({"PANDORA_ROOT": str(tmp_path / f"store{len(houses)}"), **environ})
        houses.append(open_app(settings, runtime=runtime, counter=vocabulary()))
        return houses[-1]

    yield build
    for app in houses:
        app.close()


def settled(app):
    content = CompressionInput(TEXT, "section_2_whole.md", ContentType.GENERIC)
    return asyncio.run(app.dependencies.summarizer.fit_section(2, content, site=SITE))


def test_compression_enabled_switches_the_turns_compression(opened):
    """On: phases report to it and calls are fitted; off: neither, and a call over its budget halts."""
    assert opened().dependencies.summarizer is not None
    off = opened(COMPRESSION_ENABLED="false")
    assert off.dependencies.summarizer is None and off.dependencies.execution._input_fitter.fitter is None


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
    app = opened(COMPRESSION_CACHE_TTL=ttl)
    settled(app)
    settled(app)
    assert len(records(app)) == made


def shortening():
    """A model that leaves the filler out, whatever it is asked."""

    def choice(pack):
        units = read_numbered(next(p.text for p in pack.parts if p.kind == "document"))
        return json.dumps({"keep": [unit.number for unit in units if unit.text not in FILLER] or [1]})

    runtime = scripted_runtime()
    runtime.script["compressor"] = [choice]
    return runtime


@pytest.mark.parametrize(("environ", "layer"), [({}, "NERVES"), ({"COMPRESSION_MODEL_LAYER": "MIND"}, "MIND")])
def test_compression_model_layer_is_who_compresses(environ, layer, opened):
    """NERVES unless told; calls and records name the layer."""
    runtime = shortening()
    app = opened(runtime, **environ)
    assert settled(app).report.runtime == "scripted"
    assert {p.layer for p in runtime.packs} == {layer}
    assert {r.model_layer for r in records(app)} == {layer}


def test_compression_model_layer_must_be_one_that_writes():
    """EYES and what is no layer are refused with those that may stand there."""
    for other in ("EYES", "nerves", "GPT"):
        with pytest.raises(ConfigurationError, match="expected NERVES, REFLEX, MIND or VOICE"):
            load_settings({"COMPRESSION_MODEL_LAYER": other})


@pytest.mark.parametrize(
    ("environ", "state"),
    [
        ({}, "saved"),
        ({"DEFAULT_CONTEXT_BUDGET": "1500", "RESPONSE_TOKEN_RESERVE": "100"}, "halted"),
        ({"RESPONSE_TOKEN_RESERVE": "11000"}, "halted"),
    ],
)
def test_the_call_budget_and_its_reserve_bound_a_call_over_its_recipe(environ, state, opened):
    """A query too long for its recipe's window: the larger layer takes it with DEFAULT_CONTEXT_BUDGET less RESPONSE_TOKEN_RESERVE."""
    app = opened(scripted_runtime(), **environ)
    key = app.start(" ".join(f"Tell me whether chair number {n} must be paid by me." for n in range(60)), user="anna", session="s1")
    app.run_turn(key, on_report=lambda report: None)
    manifest = app.turns.manifest(key)
    assert manifest.state == state
    if state == "halted":
        assert app.interventions.show(manifest.intervention).type == "budget_exceeded"


def records(app):
    app.calls.index.index_files(app.calls.files.paths("anna", report=pytest.fail))
    return app.calls.index.records()


def test_the_metrics_are_read_from_the_stored_records(opened):
    """Another process sees what this one counted: compressions, HALTs, tokens saved, time, overflows; `pandora doctor` says it."""
    app = opened()
    assert "compression" not in {f.part for f in app.run(app.health.check())}
    settled(app)
    section = CompressionInput("word " * 850, "section_3_whole.md", ContentType.GENERIC)
    assert "MIN_COMPRESSION_SAVINGS" in asyncio.run(app.dependencies.summarizer.fit_section(3, section, site=SITE)).halted
    asyncio.run(app.compression.engine.compress(CompressionRequest(TEXT + "\nError: disk 7 failed.", target=3), site=SITE))
    assert len(records(app)) == 3
    found = app.calls.index.compressions()
    assert (found.invocations, found.halted, found.overflow_warnings) == (2, 1, 1)
    assert found.tokens_saved == found.max_tokens_saved > 0 and found.max_latency_ms > 0
    sentence = next(f.says for f in app.run(app.health.check()) if f.part == "compression")
    assert sentence.startswith(f"2 done, 1 halted; {found.tokens_saved:,} tokens saved") and sentence.endswith("1 overflows")


def test_a_live_session_s_compressing_calls_are_limited(opened):
    """200 calls a session and 10 a minute hold over the application's store; what is put off is condensed by structure and says so."""
    runtime = shortening()
    app = opened(runtime)
    site = CallSite("tool_results", "anna", "s1")
    content = CompressionInput("\n\n".join(f"Round {n}. {TEXT}" for n in range(2)), "section_2_whole.md", ContentType.GENERIC)
    report = asyncio.run(app.dependencies.summarizer.fit_section(2, content, site=site)).report
    assert len(runtime.packs) == 10 and report.deferred.startswith("deferred: session s1 may make its next")
    assert "extractive" in report.runtime and report.counts["mutated"] == report.counts["invented"] == 0
    free = asyncio.run(app.dependencies.summarizer.fit_section(2, content, site=CallSite("tool_results", "anna", "s2"))).report
    assert len(runtime.packs) == 20 and free.deferred


def test_the_embedded_runtime_makes_no_calls_and_has_no_limit(opened):
    """No limiter's file, no deferral."""
    app = opened()
    report = asyncio.run(
        app.dependencies.summarizer.fit_section(
            2, CompressionInput(TEXT, "section_2_whole.md"), site=CallSite("tool_results", "anna", "s1")
        )
    ).report
    assert report.runtime == "extractive" and not report.deferred
    assert not list(app.settings.root.rglob("limiter.json")) and app.dependencies.execution._rate_limit is None


def test_with_a_model_its_runtime_compresses(opened):
    """The pieces are calls of the recipe of the text's type, to NERVES, by the executor."""
    runtime = shortening()
    report = settled(opened(runtime)).report
    assert report.runtime == "scripted" and {p.recipe for p in runtime.packs} == {"compress_generic"}
    assert {p.layer for p in runtime.packs} == {"NERVES"} and report.counts["mutated"] == report.counts["invented"] == 0


def test_a_python_program_gets_what_the_command_prints():
    """`compress_text`: the same fields; wrong arguments are InputErrors."""
    answer = compress_text(TEXT, 800, id="chairs", settings=load_settings({}))
    assert answer["id"] == "chairs" and answer["tokens"] <= 800 and answer["facts"]["total"] > 100 and answer["halted"] is None
    with pytest.raises(InputError, match="at least 1"):
        compress_text(TEXT, 0, settings=load_settings({}))
    with pytest.raises(InputError, match="expected one of"):
        compress_text(TEXT, 5, type="poem", settings=load_settings({}))
