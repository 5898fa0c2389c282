"""What model calls took: the command calls."""

from dataclasses import asdict
from typing import Annotated, get_args

import typer

from pandora_dagster.cli.app_context import app_of
from pandora_dagster.cli.output import EXIT_WRONG, exit_with, print_json, print_table

_HEADERS = ("Calls", "Failed", "Retries", "Tokens", "Cached", "Output", "Seconds", "Queued", "Cost")


def register(app: typer.Typer) -> None:
    app.command("calls")(calls)


def calls(
    context: typer.Context,
    by: Annotated[str, typer.Option(help="What to sum by: layer, recipe, day, phase, model, user or turn.")] = "layer",
    user: Annotated[str, typer.Option("--user", "-u", help="Only this person's.")] = "",
    since: Annotated[str, typer.Option(help="Only from this day on, such as 2026-01-04.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Sum up what model calls took: tokens, time, retries, cost.

    Failed calls count, and every attempt of a call. Costs come from the prices in the runtime file.

    Example: pandora calls --by recipe --since 2026-01-04
    """
    from datetime import date

    from pandora_dagster.contracts.ids import user_id
    from pandora_dagster.contracts.ports.record_storage import SumBy

    known = {name: name for name in get_args(SumBy)}
    if by not in known:
        exit_with(EXIT_WRONG, f"--by {by}: expected one of {', '.join(known)}")
    try:
        day = date.fromisoformat(since).isoformat() if since else ""
    except ValueError:
        exit_with(EXIT_WRONG, f"--since {since}: expected a day such as 2026-01-04")
    with app_of(context) as app:
        rows = app.calls.sums(known[by], user=user_id(user) if user else None, since=day)
    if as_json:
        print_json([{by: what, **asdict(sums)} for what, sums in rows])
        return
    print_table(
        (by.capitalize(), *_HEADERS),
        [
            (
                *(what, s.calls, s.failed, s.retries, s.used_tokens, s.cached_tokens, s.output_tokens),
                *(f"{s.latency_ms / 1_000:.1f}", f"{s.queue_ms / 1_000:.1f}", f"{s.cost:.4f}"),
            )
            for what, s in rows
        ],
    )
