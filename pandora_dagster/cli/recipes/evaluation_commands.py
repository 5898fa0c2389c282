"""Commands that evaluate recipes: scores, corrections, lessons from failures, tests, replay."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import AsJson, RecipeName, Turn, app_of, app_of_existing_store, settings_of
from pandora_dagster.cli.output import (
    EXIT_FAILED,
    EXIT_USAGE,
    exit_with,
    fields_of,
    print_json,
    print_line,
    print_markdown,
    print_note,
    print_table,
)
from pandora_dagster.language.word_forms import counted

if TYPE_CHECKING:
    from pandora_dagster.governance.call_metrics import CallMetrics
    from pandora_dagster.governance.call_replay import ReplayResult
    from pandora_dagster.governance.recipe_failures import FailureGroup
    from pandora_dagster.governance.recipe_test_run import RecipeTestOutcome
    from pandora_dagster.governance.regressions import VersionComparison

_SCORE_COLUMNS = ("calls", "passed", "first_time", "schema_valid", "citations_valid", "answered", "downstream", "calibration_error")


def scores(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A recipe; default: every recipe with calls.")] = "",
    as_json: AsJson = False,
) -> None:
    """Score recipes by their newest calls.

    Each is compared with the version and layer before. The exit code is 1 if one is worse: Fisher's exact test, one-sided, at 0.01 for
    each recipe with a Bonferroni correction over its shares, with at least 20 calls on each side. Confidence thresholds act on the outcomes
    that this command stores.

    Example: pandora recipes scores synthesizer_chat
    """
    from pandora_dagster.app.evaluation import open_evaluation
    from pandora_dagster.app.recipe_admin import open_recipe_admin

    with app_of_existing_store(context) as app:
        evaluation = open_evaluation(app)
        evaluation.calibrate()
        comparisons = (evaluation.comparison(open_recipe_admin(app.settings).recipes.path_of(name)),) if name else evaluation.comparisons()
        figures = {comparison.recipe: evaluation.production_figures(comparison.recipe) for comparison in comparisons}
    if as_json:
        print_json(
            [
                {
                    **asdict(comparison),
                    "said": comparison.summary,
                    "figures": {v: _figures_object(m) for v, m in figures[comparison.recipe].items()},
                }
                for comparison in comparisons
            ]
        )
    else:
        rows = [(f"{c.recipe}@{version}", metrics) for c in comparisons for version, metrics in reversed(figures[c.recipe].items())]
        _print_scores(comparisons, rows)
    if any(comparison.verdict == "worse" for comparison in comparisons):
        raise typer.Exit(EXIT_FAILED)


def _figures_object(metrics: "CallMetrics") -> dict[str, object]:
    return {**metrics.row(), "answered_by": dict(metrics.runtimes), "failed_gates": dict(metrics.gate_failures)}


def _print_scores(comparisons: "Sequence[VersionComparison]", rows: "Sequence[tuple[str, CallMetrics]]") -> None:
    if not rows:
        print_note("no call is recorded, so no version has scores")
        return
    cells = [(name, *(format_figure(metrics.row()[column]) for column in _SCORE_COLUMNS)) for name, metrics in rows]
    print_table(("Version", *(name.replace("_", " ") for name in _SCORE_COLUMNS)), cells)
    for name, metrics in rows:
        if metrics.runtimes:
            print_line(f"{name}: answered by {metrics.answered_by}")
        if metrics.gate_failures:
            print_line(f"{name}: failed gates: {metrics.failed_gates}")
    _note_unread_prompts(*(metrics.runtimes for _, metrics in rows))
    for comparison in comparisons:
        (print_line if comparison.verdict == "worse" else print_note)(comparison.summary)


def _note_unread_prompts(*runtimes: "Counter[str]") -> None:
    """Print a note where some of the answers show nothing about a prompt. `runtimes`: runtime -> answers."""
    from pandora_dagster.governance.call_metrics import unread_prompts_note

    if note := unread_prompts_note(sum(runtimes, Counter[str]())):
        print_note(note)


def format_figure(value: float | int | None, digits: int = 2) -> str:
    """A count as it is, a share with `digits` decimals; empty for None."""
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.{digits}f}"


def correct(
    context: typer.Context,
    turn: Turn,
    correction: Annotated[str, typer.Argument(help="What was wrong, or what it should have been.")],
    phase: Annotated[str, typer.Option("--phase", help="The phase that was wrong; default: the answer.")] = "",
    recipe: Annotated[str, typer.Option("--recipe", help="The recipe that was wrong, if several ran in the phase.")] = "",
) -> None:
    """Store a correction of a turn.

    It counts in the scores of the recipe that wrote the text, and `pandora recipes lessons` shows it. The turn does not change.

    Example: pandora correct example:turn_000012 "the desk cost 429 euros"
    """
    from pandora_dagster.governance.turn_outcomes import attribute_correction

    with app_of_existing_store(context) as app:
        key = app.turns.resolve(turn)
        manifest = app.turns.manifest(key)
        calls = [call for number in range(manifest.revision + 1) for call in app.calls.of_turn(key, number)]
        stored = attribute_correction(key, manifest, correction, app.records.corrections, phase=phase, recipe=recipe, calls=calls)
    print_line(f"{stored.id}: noted for {stored.recipe}@{stored.recipe_version}")


def _group_object(group: "FailureGroup") -> dict[str, object]:
    """The group as JSON; the message of an example has the key `said`."""
    examples = [{("said" if name == "message" else name): value for name, value in asdict(example).items()} for example in group.examples]
    return {**asdict(group), "examples": examples}


def lessons(
    context: typer.Context,
    name: RecipeName,
    last: Annotated[int, typer.Option("--last", min=1, max=1_000_000, help="Number of newest calls to read.")] = 1_000,
    to_tests: Annotated[list[str] | None, typer.Option("--to-tests", help="A call to make a test of; may be repeated.")] = None,
    fact: Annotated[list[str] | None, typer.Option("--fact", help="A text that the answer of the test must contain.")] = None,
    lacks: Annotated[list[str] | None, typer.Option("--lacks", help="A text that the answer of the test must not contain.")] = None,
    propose: Annotated[bool, typer.Option("--propose", help="Ask a model what the prompt should say instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the failures of a recipe, to improve its prompt.

    --to-tests makes tests of calls: they must pass the gates of the recipe, and contain or lack the texts that you name. Tests are stored
    with their user and erased with the user; `pandora recipes test NAME --user USER` runs them. --propose stores nothing; the embedded
    runtime proposes nothing.

    Example: pandora recipes lessons synthesizer_chat --to-tests call_4f1a
    """
    from pandora_dagster.app.evaluation import make_tests, open_evaluation
    from pandora_dagster.app.recipe_admin import open_recipe_admin, propose_lessons
    from pandora_dagster.governance.recipe_failures import render_failure_brief

    if (fact or lacks) and not to_tests:
        exit_with(EXIT_USAGE, "--fact and --lacks describe a test: expected --to-tests with a call")
    with app_of_existing_store(context) as app:
        admin = open_recipe_admin(app.settings)
        recipe = admin.recipes.path_of(name)
        if to_tests:
            for path in make_tests(app, recipe, to_tests, facts=fact or (), lacks=lacks or (), last=last):
                print_line(path)
            return
        groups = open_evaluation(app).lessons(app.recipes.load(recipe).name, last=last)
    proposed = propose_lessons(app.settings, admin, recipe, groups) if propose else ()
    if as_json:
        changes = [[lesson.change for lesson in proposed if lesson.cause == number] for number in range(1, len(groups) + 1)]
        print_json([{**_group_object(g), **({"proposed": c} if propose else {})} for g, c in zip(groups, changes, strict=True)])
        return
    print_markdown(render_failure_brief(recipe, groups))
    for lesson in proposed:
        print_line(f"{groups[lesson.cause - 1].cause}: {lesson.change} ({lesson.reasoning})")
    if propose and groups and not proposed:
        print_note("no change is proposed")
    if groups:
        print_note(f"make a test of a call with: pandora recipes lessons {recipe} --to-tests CALL --fact TEXT")


Runtime = Annotated[str, typer.Option("--runtime", help="extractive, sglang, sglang-offline or openai; default: as for `pandora`.")]


def test(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A recipe, or NAME@VERSION; default: every recipe in production.")] = "",
    runtime: Runtime = "",
    user: Annotated[str, typer.Option("--user", "-u", help="Also run the tests made of this user's calls.")] = "",
    junit: Annotated[Path | None, typer.Option("--junit", help="Write the results to this file as JUnit XML.")] = None,
    recorded: Annotated[
        Path | None, typer.Option("--recorded", help="Answer from this folder, which `pandora recipes record` wrote, without a model.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the tests of recipes.

    A test fails if the call or a gate fails, an expectation is not met or a fact is missing; the exit code is then 1. Nothing is stored.
    The embedded runtime reads no prompt. With --recorded a prompt that was changed after the recording fails its tests.

    Example: pandora recipes test reflection
    """
    from pandora_dagster.app.recipe_admin import open_recipe_admin, open_recorded_runtime, run_tests

    if recorded and runtime:
        exit_with(EXIT_USAGE, "--recorded and --runtime: expected one of them")
    settings = settings_of(context, runtime=runtime)
    admin = open_recipe_admin(settings)
    answers = open_recorded_runtime(admin, recorded) if recorded else None
    outcomes = run_tests(settings, admin, name, user=user, runtime=answers)
    _report_tests(outcomes, name, junit=junit, as_json=as_json)


def record(
    context: typer.Context,
    to: Annotated[Path, typer.Option("--to", help="Folder of the recordings: {category}/{name}.json.")],
    name: Annotated[str, typer.Argument(help="A recipe, or NAME@VERSION; default: every recipe in production.")] = "",
    runtime: Runtime = "",
    as_json: AsJson = False,
) -> None:
    """Run the tests of recipes on a model and record its answers.

    `pandora recipes test --recorded FOLDER` then repeats the tests without the model. Answers are recorded whether or not they pass; the
    exit code is 1 if one does not.

    Example: pandora recipes record reflection --runtime sglang --to recorded
    """
    from pandora_dagster.app.recipe_admin import open_recipe_admin, record_answers

    settings = settings_of(context, runtime=runtime)
    outcomes = record_answers(settings, open_recipe_admin(settings), name, to)
    _report_tests(outcomes, name, junit=None, as_json=as_json)


def _report_tests(outcomes: "tuple[RecipeTestOutcome, ...]", name: str, *, junit: Path | None, as_json: bool) -> None:
    """Print or write the outcomes, and exit with 1 where a test failed."""
    from pandora_dagster.governance.recipe_test_run import junit_xml

    if junit:
        junit.write_text(junit_xml(outcomes), encoding="utf-8")
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if as_json:
        print_json([{**asdict(o), "passed": o.passed, "reads_prompt": o.reads_prompt} for o in outcomes])
    else:
        _print_outcomes(outcomes)
    if not outcomes:
        exit_with(EXIT_USAGE, f"{name or 'recipes'}: no tests: expected a `tests:` block")
    if failed:
        raise typer.Exit(EXIT_FAILED)


def _print_outcomes(outcomes: "tuple[RecipeTestOutcome, ...]") -> None:
    for outcome in outcomes:
        for fault in outcome.faults:
            print_line(f"{outcome.recipe}@{outcome.version}: {outcome.test}: {fault}")
    from pandora_dagster.governance.recipe_test_run import answered_by

    failed = sum(not outcome.passed for outcome in outcomes)
    recipes = len({outcome.recipe for outcome in outcomes})
    print_note(f"{counted(len(outcomes), 'test')} of {counted(recipes, 'recipe')}{f', {failed} failed' if failed else ' passed'}")
    print_note(f"answered by: {answered_by(outcomes) or 'nothing'}")
    _note_unread_prompts(Counter(outcome.runtime for outcome in outcomes if outcome.runtime))


def replay(
    context: typer.Context,
    name: RecipeName,
    before: Annotated[str, typer.Option("--from", help="Only calls of this version; default: all versions.")] = "",
    to: Annotated[str, typer.Option("--to", help="The version to run: digits of a hash, file or production.")] = "production",
    last: Annotated[int, typer.Option("--last", min=1, max=1_000_000, help="Number of newest calls.")] = 200,
    layer: Annotated[str, typer.Option(help="Model layer to use: REFLEX, NERVES, MIND, VOICE or EYES.")] = "",
    runtime: Runtime = "",
    as_json: AsJson = False,
) -> None:
    """Repeat logged calls and compare the answers.

    Use it to judge another version, layer or runtime before production. Nothing is stored.

    Example: pandora recipes replay reflection --from 3fd9c2 --to file --last 200
    """
    from pandora_dagster.app.recipe_admin import open_dry_run, open_recipe_admin
    from pandora_dagster.contracts.enums import ModelLayer
    from pandora_dagster.governance.call_replay import replay_calls
    from pandora_dagster.governance.promotion import resolve_version

    if layer and layer not in tuple(ModelLayer):
        exit_with(EXIT_USAGE, f"--layer {layer}: expected one of {', '.join(ModelLayer)}")
    settings = settings_of(context, runtime=runtime)
    admin = open_recipe_admin(settings)
    recipe = admin.recipes.path_of(name)
    version = resolve_version(admin.ctx, recipe, to)
    logged = resolve_version(admin.ctx, recipe, before).version if before else ""
    with app_of(context) as app:
        records = app.calls.newest(version.name, version=logged, limit=last)
        dry_run = open_dry_run(settings, admin.production, admin.counter)
        try:
            dry_run.executor.select_version(version)
            chosen_layer = ModelLayer(layer) if layer else None
            replaying = replay_calls(records, dry_run.executor, app.vault.read, layer=chosen_layer, concurrency=dry_run.concurrency)
            result = dry_run.run(replaying)
        finally:
            dry_run.close()
    if as_json:
        print_json(_replay_object(result, recipe, logged, version.version))
        return
    _print_replay(result, logged or "as logged", version.version)
    if not result.calls:
        exit_with(EXIT_USAGE, f"{recipe}: no logged call could be repeated: expected calls of {logged or 'any version'} with stored inputs")


def _print_replay(result: "ReplayResult", before: str, after: str) -> None:
    from pandora_dagster.governance.call_metrics import counted_names

    row_before, row_after = result.before.row(), result.after.row()
    layers = [", ".join(f"{layer} {count}" for layer, count in side.layers.items()) for side in (result.before, result.after)]
    figures = [(name.replace("_", " "), format_figure(row_before[name], 3), format_figure(row_after[name], 3)) for name in row_before]
    runtimes = [counted_names(side.runtimes) for side in (result.before, result.after)]
    print_table(("", before, after), [*figures, ("layer", *layers), ("answered by", *runtimes)])
    print_line(f"the same: {result.same} of {counted(result.calls, 'answer')}")
    for name, count in result.changed.most_common():
        print_line(f"  {name}: different in {count}")
    for example in result.examples:
        print_line(f"\n{example.call_id} {example.turn} ({', '.join(example.fields)})\n- {example.before}\n+ {example.after}")
    for reason, count in result.left_out.items():
        print_note(f"{counted(count, 'call')} left out: {reason}")
    _note_unread_prompts(result.after.runtimes)


def _replay_object(result: "ReplayResult", recipe: str, before: str, after: str) -> dict[str, object]:
    return {
        "recipe": recipe,
        "from": before,
        "to": after,
        **fields_of(result, ("calls", "same", "changed", "left_out", "examples")),
        "before": {**result.before.row(), "layers": dict(result.before.layers), "answered_by": dict(result.before.runtimes)},
        "after": {**result.after.row(), "layers": dict(result.after.layers), "answered_by": dict(result.after.runtimes)},
    }
