"""Members that are true or false: `"refundable": false` in a result, `refundable false` in a list. Knows forms; knows no facts."""

import re
from collections import defaultdict
from collections.abc import Iterator

_MEMBER = re.compile(r"\"?\b([A-Za-z][\w\-]{0,80})\\*\"?\s{0,3}[:=]?\s{0,3}\b(true|false|True|False)\b")


def turned_booleans(text: str, source: str) -> Iterator[str]:
    """Members of `text` with the truth value that `source`, which has members of this name, gives to none of them."""
    theirs: defaultdict[str, set[str]] = defaultdict(set)
    for member in _MEMBER.finditer(source):
        theirs[member.group(1).lower()].add(member.group(2).lower())
    for member in _MEMBER.finditer(text) if theirs else ():
        known = theirs.get(member.group(1).lower())
        if known and member.group(2).lower() not in known:
            yield member.group()
