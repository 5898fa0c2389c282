"""Threads of mails: each sentence stands behind who wrote it, and when."""

import pytest

from pandora_dagster.compression import compress
from pandora_dagster.compression.read.dialogue_lines import is_dialogue, read_lines
from pandora_dagster.compression.read.mail_threads import as_talk, mail_rows
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.ports.measurement import TokenMeasure

THREAD = """From: Nora Brandt <nora@brandt.example>
To: Ivo Sanders <ivo@sanders.example>
Date: Tue, 5 May 2026 10:15
Subject: Roof repair, Elm Street

Dear Ivo,

the roof over the north wing leaks since the storm. We need an offer for 140 square metres of slate. Our insurance pays at most
6,200 euros, and we will not sign anything above that. Please do not park in the yard.

Best regards,
Nora

---
From: Ivo Sanders <ivo@sanders.example>
To: Nora Brandt <nora@brandt.example>
Date: Wed, 6 May 2026 16:40
Subject: Re: Roof repair, Elm Street

Dear Nora,

offer RF-1180 is 6,050 euros net for 140 square metres. We can start on 18 May and need four days. The scaffold must not stay longer
than 25 May, because the crew has another site then.

Ivo

---
From: Lea Moritz <lea@moritz.example>
To: Ivo Sanders <ivo@sanders.example>
Cc: Nora Brandt <nora@brandt.example>
Date: Fri, 8 May 2026 09:05
Subject: Re: Re: Roof repair, Elm Street

Hello Ivo,

I am the tenant of the north wing. I am away until 20 May, so you cannot get in before that. RF-1180 is no longer valid for me if
the work moves to June. I will send you the key by post on 12 May.

Lea
"""
QUOTED = """From: Ann Lee <ann@lee.example>
Sent: Monday, 4 May 2026 09:00
Subject: AW: Venue

We take the small hall then, for 40 people.

On Sun, 3 May 2026 at 18:22, Tom Ode <tom@ode.example> wrote:
> The large hall costs 900 euros, the small one 450 euros.
> It has no kitchen.
>
> Am 02.05.2026 um 11:05 schrieb Ann Lee <ann@lee.example>:
>> What does a hall for 60 people cost on 20 June?
"""


def _speaker_of(text: str, part: str) -> str:
    return next(line.speaker for line in read_lines(text) if part in line.text)


@pytest.mark.parametrize("target", (230, 150, 90))
def test_what_stands_of_a_thread_stands_behind_its_sender(counter: TokenMeasure, target: int) -> None:
    made = compress(CompressionRequest(THREAD, target=target), counter)
    assert made.text is not None
    told = {
        "6,200": "Nora Brandt",
        "park in the yard": "Nora Brandt",
        "6,050": "Ivo Sanders",
        "25 May": "Ivo Sanders",
        "20 May": "Lea Moritz",
    }
    standing = {part: name for part, name in told.items() if part in made.text}
    assert standing
    assert {part: _speaker_of(made.text, part) for part in standing} == standing
    assert "From:" not in made.text
    assert "Re: " not in made.text


def test_the_time_of_a_mail_stands_with_its_sender(counter: TokenMeasure) -> None:
    text = compress(CompressionRequest(THREAD, target=150), counter).text or ""
    times = {"Nora Brandt": "Tue, 5 May 2026 10:15", "Ivo Sanders": "Wed, 6 May 2026 16:40", "Lea Moritz": "Fri, 8 May 2026 09:05"}
    openings = [line.partition("): ")[0] for line in text.split("\n") if "): " in line]
    assert openings
    assert all(f"{times[name]}" == when for name, _, when in (opening.removeprefix("also: ").partition(" (") for opening in openings))


def test_an_offer_that_holds_no_more_stands_with_what_says_so(counter: TokenMeasure) -> None:
    for target in range(60, 240, 20):
        text = compress(CompressionRequest(THREAD, target=target), counter).text or ""
        assert "RF-1180 is 6,050" not in text or "no longer valid" in text


def test_a_quoted_reply_is_its_writers() -> None:
    talk = as_talk(QUOTED)
    assert talk.split("\n") == [
        "Subject: Venue",
        "Ann Lee (Monday, 4 May 2026 09:00): We take the small hall then, for 40 people.",
        "Tom Ode (Sun, 3 May 2026 at 18:22): The large hall costs 900 euros, the small one 450 euros. It has no kitchen.",
        "Ann Lee (02.05.2026 um 11:05): What does a hall for 60 people cost on 20 June?",
    ]
    assert {line.speaker for line in read_lines(talk)} == {"", "Ann Lee", "Tom Ode"}


def test_a_reply_between_quoted_lines_is_the_repliers() -> None:
    text = (
        "From: Ann Lee\nDate: 4 May 2026 09:00\n\nOn 3 May 2026 at 18:22, Tom Ode wrote:\n"
        "> Shall we take the large hall?\nNo, the small one.\n> And who pays?\nI do.\n"
    )
    said = [(row.sender, row.text) for row in mail_rows(text) if not row.is_head]
    assert said == [
        ("Tom Ode", "Shall we take the large hall?"),
        ("Ann Lee", "No, the small one."),
        ("Tom Ode", "And who pays?"),
        ("Ann Lee", "I do."),
    ]


@pytest.mark.parametrize(
    ("sender", "when", "subject"), (("Von", "Gesendet", "Betreff"), ("De", "Date", "Objet"), ("*From", "*Sent", "*Subject"))
)
def test_headers_of_other_languages_and_programs(sender: str, when: str, subject: str) -> None:
    star = "*" if sender[0] == "*" else ""
    mails = [
        f"{sender}:{star} {name} <x@y.example>\n{when}:{star} 4.5.2026 09:0{n}\n{subject}:{star} Dach\n\nDer Preis ist {n}00 Euro.\n"
        for n, name in enumerate(("Eva Kern", "Paul Roth"), 1)
    ]
    assert as_talk("\n".join(mails)).split("\n") == [
        "Subject: Dach",
        "Eva Kern (4.5.2026 09:01): Der Preis ist 100 Euro.",
        "Paul Roth (4.5.2026 09:02): Der Preis ist 200 Euro.",
    ]


def test_what_a_later_mail_quotes_is_said_once() -> None:
    again = "\n".join(f"> {line}" for line in THREAD.split("---")[0].split("\n"))
    assert as_talk(THREAD + "\n" + again).count("leaks since the storm") == 1


@pytest.mark.parametrize(
    "text", ("From: here to there\nit is far.\n", "Ann: hi\nTom: hello\nAnn: bye\n", "From: Ann Lee\nDate: 4 May 2026\n\nHi.\n")
)
def test_what_is_no_thread_stays_as_it_is(text: str) -> None:
    assert as_talk(text) == text


def test_a_condensed_thread_is_talk_that_can_be_condensed_again(counter: TokenMeasure) -> None:
    once = compress(CompressionRequest(THREAD, target=150), counter).text or ""
    twice = compress(CompressionRequest(once, original=THREAD, target=80), counter)
    assert is_dialogue(as_talk(THREAD))
    assert twice.text is not None
    assert not twice.counts["invented"]
    assert not twice.counts["mutated"]
