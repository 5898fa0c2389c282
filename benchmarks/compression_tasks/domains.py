"""Talk with tools in domains made up here: does what a result takes up again survive the compression of what stands before it?

Five desks (library, clinic, tracker, mobile operator, spare parts), each with identifiers of its own shape, nested records and
long lists of which only a few entries matter. Drawn from a fixed seed; nothing of any data set is in them. The same question is
asked of the airline transcripts, cut before each of their results.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compression_tasks.literal import literal, share
from compression_tasks.tau_bench import as_line, conversations

Compressor = Callable[[str, int], str]
Turn = tuple[str, Any]
_IDENTIFIER = re.compile(r"#?(?=\S*\d)(?=\S*[A-Za-z_#\-])[\w\-.#]{4,}|\d{6,}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d\S*|\d\d:\d\d\S*")
_NAMES = "Ines Falk,Omar Reyes,Tove Lind,Kenji Mori,Abena Osei,Pia Novak,Luc Moreau,Nadia Rahman,Jon Skov,Rosa Vidal,Emre Kaya,Mina Park"
_PLACES = "Harbour,Northgate,Millbrook,Eastfield,Old Town,Riverside,Hillcrest,Quay,Parkside,Station"


@dataclass(frozen=True, slots=True)
class Cut:
    """A transcript up to a tool result, and the identifiers of that result which it holds."""

    before: str
    wanted: frozenset[str]


def cuts(*, conversations_each: int = 12) -> list[Cut]:
    """The cuts of all desks."""
    found: list[Cut] = []
    for ctx in (_library, _clinic, _tracker, _operator, _parts):
        for seed in range(conversations_each):
            turns = list(ctx(random.Random(f"{ctx.__name__} {seed}")))
            found += _cut([_line(turn, names_tools=bool(seed % 2)) for turn in turns], [t[1] if t[0] == "tool" else None for t in turns])
    return found


def airline_cuts(data: Path) -> list[Cut]:
    """The airline transcripts, cut before each result that is JSON."""
    found: list[Cut] = []
    for messages in conversations(data):
        found += _cut([as_line(m) for m in messages], [_json(m["content"]) if m["role"] == "tool" else None for m in messages])
    return found


def all_there(found: list[Cut], compress: Compressor, target: int, count: Callable[[str], int]) -> float:
    """Share of the cuts longer than `target` whose identifiers are all still there, literally."""
    kept = asked = 0
    for cut in found:
        if count(cut.before) <= target:
            continue
        out = f" {literal(compress(cut.before, target))} "
        asked += 1
        kept += all(f" {name} " in out for name in cut.wanted)
    return share(kept, asked)


def _cut(lines: list[str], results: list[Any]) -> list[Cut]:
    found: list[Cut] = []
    for n, result in enumerate(results):
        before = "\n".join(lines[:n])
        padded = f" {literal(before)} "
        wanted = frozenset(k for leaf in _leaves(result) if (k := _named(leaf)) and f" {k} " in padded)
        if wanted:
            found.append(Cut(before, wanted))
    return found


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        yield value


def _named(leaf: str) -> str:
    return literal(leaf) if _IDENTIFIER.fullmatch(leaf) and not _DATE.fullmatch(leaf) else ""


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        return None


def _line(turn: Turn, *, names_tools: bool) -> str:
    kind, value = turn[0], turn[1]
    if kind == "tool":
        return f"tool{' ' + turn[2] if names_tools and len(turn) > 2 else ''}: {json.dumps(value)}"
    if kind == "call":
        calls = [{"name": value[0], "arguments": json.dumps(value[1]) if names_tools else value[1]}]
        return f"assistant:  {json.dumps(calls)}"
    return f"{kind}: {value}"


def _code(draw: random.Random, letters: int, digits: int, *, upper: bool = True) -> str:
    alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ"
    text = "".join(draw.choices(alphabet, k=letters))
    return (text if upper else text.lower()) + "".join(draw.choices("0123456789", k=digits))


def _day(draw: random.Random) -> str:
    return f"2026-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d}"


def _ask(tool: str, /, **arguments: Any) -> Turn:
    return ("call", (tool, arguments))


def _library(draw: random.Random) -> Iterator[Turn]:
    """Loans by copy barcode; the person renews one, returns to it, and reserves a title."""
    name, card = draw.choice(_NAMES.split(",")), f"LB-{draw.randint(10_000, 99_999)}"
    titles = [f"{a} {b}" for a in ("Winter", "Silent", "Glass", "Hidden", "Copper") for b in ("Orchard", "Harbour", "Atlas", "Letters")]
    copies = [{"barcode": f"3{draw.randint(10**8, 10**9)}", "title": t, "branch": draw.choice(_PLACES.split(","))} for t in titles]
    loans = [
        {"loan_id": f"ln_{_code(draw, 3, 4, upper=False)}", "copy": c, "due": _day(draw), "renewals": draw.randint(0, 3)}
        for c in copies[:14]
    ]
    yield ("user", f"Hello, I am {name}, my card is {card}. I would like to renew something I have borrowed.")
    yield _ask("find_member", card=card)
    yield ("tool", {"card": card, "name": {"first": name.split()[0], "last": name.split()[1]}, "home_branch": copies[0]["branch"],
                    "loans": [x["loan_id"] for x in loans], "fines": []}, "find_member")  # fmt: skip
    one, other = draw.sample(loans, 2)
    yield ("assistant", "I found your account. Which of your loans is it?")
    yield ("user", f"The one called {one['copy']['title']}.")
    yield _ask("list_loans", card=card)
    yield ("tool", loans, "list_loans")
    yield ("assistant", f"That is loan {one['loan_id']}, due {one['due']}. Shall I renew it?")
    yield ("user", "Yes please.")
    yield _ask("renew", loan_id=one["loan_id"])
    yield ("tool", {**one, "renewals": one["renewals"] + 1, "due": _day(draw)}, "renew")
    for title in draw.sample(titles, 2):
        yield ("user", f"Is {title} there too, anywhere?")
        yield _ask("search_copies", title=title)
        yield ("tool", [{"barcode": f"3{draw.randint(10**8, 10**9)}", "title": title, "branch": b, "status": "on_loan", "shelf": _code(draw, 2, 3),  # noqa: E501
                         "reservable": True} for b in _PLACES.split(",")], "search_copies")  # fmt: skip
        yield ("assistant", f"All copies of {title} are on loan at the moment, at every one of our branches, I am sorry to say.")
    wanted = draw.choice(copies[14:])
    found = [{"barcode": f"3{draw.randint(10**8, 10**9)}", "title": wanted["title"], "branch": b, "status": draw.choice(("on_shelf", "on_loan")),  # noqa: E501
              "shelf": _code(draw, 2, 3), "reservable": draw.random() < 0.5} for b in _PLACES.split(",") for _ in range(3)]  # fmt: skip
    yield ("assistant", "Renewed. Anything else?")
    yield ("user", f"Do you have {wanted['title']} at {found[0]['branch']}? I want to reserve it there. Nothing that is on loan.")
    yield _ask("search_copies", title=wanted["title"])
    yield ("tool", found, "search_copies")
    pick = draw.choice(found[:3])
    yield ("assistant", f"There are three at {pick['branch']}. The copy on shelf {pick['shelf']} is the one I would take.")
    yield ("user", "Good, reserve that one.")
    yield _ask("reserve", card=card, barcode=pick["barcode"])
    yield ("tool", {"reservation": f"rs_{_code(draw, 4, 3, upper=False)}", "card": card, "copy": pick}, "reserve")
    yield ("assistant", "Done.")
    yield ("user", f"And when is {other['copy']['title']} due? Renew that too.")
    yield _ask("renew", loan_id=other["loan_id"])
    yield ("tool", {**other, "renewals": other["renewals"] + 1}, "renew")


def _clinic(draw: random.Random) -> Iterator[Turn]:
    """Appointments with doctors and insurers; slots are searched, one is booked, another is moved."""
    name, record = draw.choice(_NAMES.split(",")), f"MRN{draw.randint(10**6, 10**7)}"
    doctors = [{"doctor_id": f"D-{_code(draw, 2, 2)}", "name": f"Dr. {n.split()[1]}", "field": draw.choice(("eye", "skin", "heart"))}
               for n in _NAMES.split(",")]  # fmt: skip
    visits = [{"visit": f"V{draw.randint(10**5, 10**6)}-{draw.randint(1, 9)}", "doctor": draw.choice(doctors), "on": _day(draw),
               "room": _code(draw, 1, 3), "state": draw.choice(("booked", "done", "cancelled"))} for _ in range(9)]  # fmt: skip
    plans = {p: {"plan_id": p, "insurer": draw.choice(("Alva", "Nordic", "Unity")), "share": draw.randint(5, 40)}
             for p in (f"pl-{_code(draw, 2, 5, upper=False)}" for _ in range(3))}  # fmt: skip
    yield ("user", f"Hi, this is {name}, patient number {record}. I need to move an appointment.")
    yield _ask("get_patient", record=record)
    yield (
        "tool",
        {"record": record, "name": name, "born": _day(draw), "plans": plans, "visits": [v["visit"] for v in visits]},
        "get_patient",
    )
    for visit in draw.sample(visits, 8):
        yield _ask("get_visit", visit=visit["visit"])
        yield ("tool", {**visit, "record": record, "plan_id": draw.choice(list(plans))}, "get_visit")
        yield (
            "assistant",
            f"That visit is on {visit['on']} in room {visit['room']} with {visit['doctor']['name']}, and it is {visit['state']}.",
        )
        yield ("user", "No, that is not the one I mean.")
    moved = draw.choice(visits)
    slots = [{"slot_id": f"{_code(draw, 3, 0)}.{draw.randint(100, 999)}.{draw.randint(10, 99)}", "doctor_id": draw.choice(doctors)["doctor_id"],  # noqa: E501
              "on": _day(draw), "at": f"{draw.randint(8, 17):02d}:{draw.choice(('00', '20', '40'))}", "minutes": 20} for _ in range(30)]  # fmt: skip  # noqa: E501
    yield ("assistant", "You have several appointments. Which one, and what day would suit you?")
    yield ("user", f"The one with {moved['doctor']['name']} on {moved['on']}. Any time in {slots[4]['on'][:7]} would do.")
    yield _ask("find_slots", doctor_id=moved["doctor"]["doctor_id"], month=slots[4]["on"][:7])
    yield ("tool", {"doctor": moved["doctor"], "slots": slots}, "find_slots")
    slot = draw.choice(slots)
    yield ("assistant", f"I can offer {slot['on']} at {slot['at']}. Shall I take it?")
    yield ("user", "Yes. And please use my second plan for it.")
    yield _ask("move_visit", visit=moved["visit"], slot_id=slot["slot_id"], plan_id=list(plans)[1])
    yield ("tool", {**moved, "slot": slot, "plan_id": list(plans)[1], "record": record}, "move_visit")
    yield ("assistant", "It is moved.")
    yield ("user", "Which doctor is that again, and can you send a reminder?")
    yield _ask("remind", visit=moved["visit"])
    yield ("tool", {"visit": moved["visit"], "doctor_id": slot["doctor_id"], "sent": True}, "remind")


def _tracker(draw: random.Random) -> Iterator[Turn]:
    """Issues with keys, commits and people; a search, three looks, a link between two, a build."""
    me = f"{draw.choice(_NAMES.split(',')).split()[0].lower()}.{_code(draw, 1, 2, upper=False)}"
    people = [f"{n.split()[0].lower()}.{_code(draw, 1, 2, upper=False)}" for n in _NAMES.split(",")]
    words = ["login", "crash", "export", "timeout", "search", "upload", "cache", "invoice", "theme", "retry"]
    found = [{"key": f"CORE-{draw.randint(100, 9_999)}", "title": f"{draw.choice(words)} {draw.choice(words)} fails in {draw.choice(words)}",  # noqa: E501
              "assignee": draw.choice(people), "state": draw.choice(("open", "in_review", "closed")), "votes": draw.randint(0, 40)}
             for _ in range(30)]  # fmt: skip
    yield ("user", f"I am {me}. I look for our open bugs about the {words[1]} and what was done about them.")
    yield _ask("search_issues", text=words[1], limit=30)
    yield ("tool", {"total": 30, "issues": found}, "search_issues")
    looked = draw.sample(found, 6)
    for issue in looked:
        yield ("assistant", f"Let me open {issue['key']}.")
        yield _ask("get_issue", key=issue["key"])
        commits = [{"sha": f"{draw.getrandbits(40):010x}", "by": draw.choice(people), "at": _day(draw)} for _ in range(4)]
        yield ("tool", {**issue, "reporter": draw.choice(people), "commits": commits, "links": [draw.choice(found)["key"]],
                        "body": f"Since {_day(draw)} the {issue['title']}. It happens about {draw.randint(2, 30)} times a day."}, "get_issue")  # fmt: skip  # noqa: E501
    one, other = draw.sample(looked, 2)
    yield ("assistant", f"{one['key']} ({one['title']}) and {other['key']} look alike.")
    yield ("user", f"Yes, mark {one['key']} as a duplicate of the other, and give both to {people[0]}. Do not close {other['key']}.")
    yield _ask("link", key=one["key"], to=other["key"], kind="duplicates", assignee=people[0])
    yield ("tool", {"key": one["key"], "links": [other["key"]], "assignee": people[0], "title": one["title"]}, "link")
    builds = [{"build": f"b{draw.randint(10**4, 10**5)}", "sha": c["sha"], "branch": draw.choice(("main", "next")), "ok": draw.random() < 0.6}  # noqa: E501
              for c in commits]  # fmt: skip
    yield ("user", f"Which builds have the commits of {looked[-1]['key']}?")
    yield _ask("builds_of", key=looked[-1]["key"])
    yield ("tool", builds, "builds_of")
    third = draw.choice(found)
    yield ("assistant", "Four builds have them.")
    yield ("user", f"Last: close {third['key']}, it is the one about '{third['title']}'.")
    yield _ask("close", key=third["key"])
    yield ("tool", {**third, "state": "closed"}, "close")


def _operator(draw: random.Random) -> Iterator[Turn]:
    """Lines, plans, bills and devices of a customer; a bill is disputed and a plan is changed."""
    name, customer = draw.choice(_NAMES.split(",")), f"C{draw.randint(1_000, 9_999)}"
    plans = [{"plan_id": f"P{n}{_code(draw, 1, 3)}", "title": f"{a} {b}", "gb": draw.choice((2, 10, 40)), "fee": draw.randint(5, 60) + 0.99}
             for n, (a, b) in enumerate((a, b) for a in ("Basic", "Family", "Pro", "Travel", "Max") for b in ("S", "M", "L", "XL"))]  # fmt: skip  # noqa: E501
    lines = [{"line_id": f"L{draw.randint(1_000, 9_999)}", "number": f"555-{draw.randint(100, 999)}-{draw.randint(1_000, 9_999)}",
              "plan_id": draw.choice(plans)["plan_id"], "device": {"device_id": f"DV{draw.randint(10**4, 10**5)}", "model": f"Phone {n}",
              "imei": str(draw.randint(10**14, 10**15))}, "status": draw.choice(("active", "suspended"))} for n in range(4)]  # fmt: skip
    bills = [{"bill_id": f"B{draw.randint(10**6, 10**7)}", "period": f"2026-{m:02d}", "total": round(draw.uniform(20, 200), 2),
              "items": [{"line_id": x["line_id"], "charge": round(draw.uniform(5, 60), 2)} for x in lines]} for m in range(1, 13)]  # fmt: skip  # noqa: E501
    yield ("user", f"Hi, I'm {name}. My number is {lines[0]['number']}. My bill of March seems wrong.")
    yield _ask("customer_by_phone", number=lines[0]["number"])
    yield ("tool", {"customer_id": customer, "name": name, "line_ids": [x["line_id"] for x in lines], "bill_ids": [b["bill_id"] for b in bills],  # noqa: E501
                    "address": {"street": f"{draw.randint(1, 99)} {draw.choice(_PLACES.split(','))} Road", "zip": str(draw.randint(10**4, 10**5))}},  # noqa: E501
           "customer_by_phone")  # fmt: skip
    for line in lines:
        yield _ask("line_details", line_id=line["line_id"])
        yield ("tool", line, "line_details")
        yield _ask("usage", line_id=line["line_id"])
        yield ("tool", [{"usage_id": f"u{draw.randint(10**6, 10**7)}", "line_id": line["line_id"], "on": _day(draw), "mb": draw.randint(1, 900)}  # noqa: E501
                        for _ in range(15)], "usage")  # fmt: skip
    march = bills[2]
    yield _ask("bills", customer_id=customer)
    yield ("tool", bills, "bills")
    yield ("assistant", f"The bill of March is {march['bill_id']} over ${march['total']}. Which charge do you dispute?")
    yield ("user", f"The one of my second line. I must not pay more than ${march['items'][1]['charge'] - 4:.2f} for it.")
    yield _ask("dispute", bill_id=march["bill_id"], line_id=lines[1]["line_id"])
    yield ("tool", {"case": f"CASE-{draw.randint(10**4, 10**5)}", "bill_id": march["bill_id"], "line_id": lines[1]["line_id"]}, "dispute")
    yield ("assistant", "The dispute is open. Anything else?")
    wanted = draw.choice(plans)
    yield ("user", f"Yes, what plans are there? I think of {wanted['title']} for my third line.")
    yield _ask("list_plans")
    yield ("tool", plans, "list_plans")
    yield ("assistant", f"{wanted['title']} is ${wanted['fee']} a month with {wanted['gb']} GB.")
    yield ("user", "Fine, change it.")
    yield _ask("change_plan", line_id=lines[2]["line_id"], plan_id=wanted["plan_id"])
    yield ("tool", {**lines[2], "plan_id": wanted["plan_id"]}, "change_plan")
    yield ("assistant", "Changed.")
    yield ("user", "Is the phone on that line insured?")
    yield _ask("insurance", device_id=lines[2]["device"]["device_id"])
    yield ("tool", {"device_id": lines[2]["device"]["device_id"], "imei": lines[2]["device"]["imei"], "insured": False}, "insurance")


def _parts(draw: random.Random) -> Iterator[Turn]:
    """Orders of spare parts with variants; a variant is exchanged, another order is looked at, one is cancelled."""
    name, account = draw.choice(_NAMES.split(",")), f"acc_{_code(draw, 4, 4, upper=False)}"
    kinds = [f"{a} {b}" for a in ("Brake", "Pump", "Belt", "Valve") for b in ("Disc", "Kit", "Seal")]
    catalogue = {k: {v: {"variant_id": v, "options": {"size": draw.choice(("S", "M", "L")), "metal": draw.choice(("steel", "brass"))},
                         "in_stock": draw.random() < 0.6, "price": round(draw.uniform(9, 300), 2)}
                     for v in (str(draw.randint(10**9, 10**10)) for _ in range(9))} for k in kinds}  # fmt: skip
    articles = {k: str(draw.randint(10**9, 10**10)) for k in kinds}
    payments = {
        p: {"source": s, "id": p}
        for s, p in (("card", f"card_{draw.randint(10**6, 10**7)}"), ("voucher", f"voucher_{draw.randint(10**6, 10**7)}"))
    }

    def _order() -> dict[str, Any]:
        items = [
            {"name": k, "article_id": articles[k], **draw.choice(list(catalogue[k].values()))}
            for k in draw.sample(kinds, draw.randint(2, 5))
        ]
        return {"order_no": f"#{_code(draw, 1, 7)}", "account": account, "items": items, "status": draw.choice(("pending", "delivered")),
                "paid": [{"kind": "payment", "amount": round(sum(i["price"] for i in items), 2), "with": draw.choice(list(payments))}],
                "parcels": [{"parcel": [str(draw.randint(10**11, 10**12))], "variants": [i["variant_id"] for i in items]}]}  # fmt: skip

    orders = [_order() for _ in range(7)]
    yield ("user", f"Good day, {name} here, zip {draw.randint(10**4, 10**5)}. I want to exchange a part and check another order.")
    yield _ask("find_account", name=name)
    yield ("tool", account, "find_account")
    yield _ask("account", account=account)
    yield ("tool", {"name": name, "account": account, "payments": payments, "orders": [o["order_no"] for o in orders]}, "account")
    for order in orders[:4]:
        yield ("assistant", "One moment, I look at an order.")
        yield _ask("order", order_no=order["order_no"])
        yield ("tool", order, "order")
    for item in orders[0]["items"][:2]:
        yield ("user", f"What else is there of the {item['name']}?")
        yield _ask("article", article_id=item["article_id"])
        yield ("tool", {"name": item["name"], "article_id": item["article_id"], "variants": catalogue[item["name"]]}, "article")
        yield ("assistant", f"There are nine variants of the {item['name']}, in three sizes and two metals, some of them out of stock.")
    changed = draw.choice(orders[1]["items"])
    yield ("assistant", f"Order {orders[1]['order_no']} has the {changed['name']}. What would you like instead?")
    yield ("user", f"The {changed['name']} in brass if there is one in stock, with the same size. Please do not change anything else.")
    yield _ask("article", article_id=changed["article_id"])
    yield ("tool", {"name": changed["name"], "article_id": changed["article_id"], "variants": catalogue[changed["name"]]}, "article")
    new = draw.choice(list(catalogue[changed["name"]].values()))
    yield (
        "assistant",
        f"There is one in {new['options']['metal']}, size {new['options']['size']}, for ${new['price']}. Which payment shall I use?",
    )
    yield ("user", "The voucher please.")
    yield _ask("exchange", order_no=orders[1]["order_no"], old=[changed["variant_id"]], new=[new["variant_id"]], payment=list(payments)[1])
    items = [{**i, **new} if i is changed else i for i in orders[1]["items"]]
    yield ("tool", {**orders[1], "items": items, "exchange_payment": list(payments)[1], "status": "exchange requested"}, "exchange")
    yield ("assistant", "The exchange is requested.")
    yield ("user", "Then look at my other orders: I think one of them has the same part.")
    for order in (orders[4], orders[2], orders[5]):
        yield _ask("order", order_no=order["order_no"])
        yield ("tool", order, "order")
    yield ("user", f"Cancel {orders[3]['order_no']}, I ordered it by mistake.")
    yield _ask("cancel", order_no=orders[3]["order_no"])
    yield ("tool", {**orders[3], "status": "cancelled"}, "cancel")
