"""The rules of a host's robots.txt, read by Protego (RFC 9309)."""

from functools import lru_cache

from protego import Protego

from pandora_dagster.contracts.web.fetched import RobotsAnswer

AGENT = "pandora-dagster"
"""The product token that a group of robots.txt can name."""
MAX_ROBOTS_BYTES = 512 * 1024
_KEEP_S, _KEEP_UNAVAILABLE_S = 24 * 3600.0, 300.0
"""Seconds for which an answer is used; RFC 9309 asks for at most a day."""


def rules_of(text: str, now: float) -> RobotsAnswer:
    """The answer of a host that has a robots.txt, or "" where it has none (4xx): then everything is allowed."""
    return RobotsAnswer(text=text, unavailable="", until=now + _KEEP_S)


def unavailable(reason: str, now: float) -> RobotsAnswer:
    """The answer of a host whose robots.txt does not come (5xx, no answer): then nothing is allowed."""
    return RobotsAnswer(text="", unavailable=reason, until=now + _KEEP_UNAVAILABLE_S)


def is_allowed(answer: RobotsAnswer, url: str) -> bool:
    return not answer.unavailable and _parse(answer.text).can_fetch(url, AGENT)


def crawl_delay_s(answer: RobotsAnswer) -> float:
    """The seconds between requests that robots.txt asks for, as Crawl-delay or Request-rate; 0 where it does not."""
    rules = _parse(answer.text)
    rate = rules.request_rate(AGENT)
    return max(rules.crawl_delay(AGENT) or 0.0, rate.seconds / rate.requests if rate and rate.requests else 0.0)


@lru_cache(maxsize=64)
def _parse(text: str) -> Protego:
    return Protego.parse(text)
