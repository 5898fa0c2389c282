"""A message's place among all messages of a user, as one number.

The turn's number is in the bits above the message's place in the turn; place 0 is the turn itself. Numbers of one user rise with time.
"""

PLACE_BITS, NUMBER_BITS = 20, 24


def document_number(number: int, place: int = 0) -> int:
    """The document that is a turn (place 0) or one of its messages (counted from 1)."""
    return (number << PLACE_BITS) + place


def turn_number(doc: int) -> int:
    """The number of the turn that a document belongs to."""
    return doc >> PLACE_BITS


def is_turn(doc: int) -> bool:
    """Whether a document is a turn itself."""
    return not doc & ((1 << PLACE_BITS) - 1)
