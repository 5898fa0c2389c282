"""Compression by a model that selects (`compression.mode: select`): the result is verbatim, so its meaning needs no judgement.

1 read the text as units (sentences, items, rows ...), and number them in pieces of one call each
2 the model answers with the numbers to keep, in the order of their importance: `[4, 1, 7]`
3 code adds the units that the selected ones need, and drops units from the end of the order while the text is over its target
4 the structural selection fills the remaining tokens, and selects in pieces whose answer names no units
5 the selected units are rendered in the order of the text, with marks of what was left out
"""

from dataclasses import dataclass, field, replace

from pandora_dagster.compression.numbered_units import UnitChoice, UnitPiece, merged_order, ranked_choice, read_choice, unit_pieces
from pandora_dagster.compression.salience.salience import reading_salience
from pandora_dagster.compression.salience.text_reading import TextReading, read_text
from pandora_dagster.compression.selection.omission_marks import Omission, omissions_by_unit, without_marks
from pandora_dagster.compression.selection.unit_selection import select_units
from pandora_dagster.contracts.model_calls import CallRequest, InputDocument
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.execution.fit.compression_calls import FRAME_TOKENS, MAX_CALLS, CompressionCalls, PieceTexts, gather_or_cancel
from pandora_dagster.execution.fit.compression_contract import CompressionContract, with_original_margins
from pandora_dagster.execution.fit.text_stretches import stretches_within

_MIN_STRETCH_TOKENS = 40
"""A smaller stretch stays whole: marks of omission would take the tokens that are saved."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A stretch of the text, which stays verbatim where `reading` is None; `marks`: unit -> its marks of earlier compressions."""

    text: str
    tokens: int
    reading: TextReading | None = None
    pieces: tuple[UnitPiece, ...] = ()
    marks: dict[int, list[Omission]] = field(default_factory=dict[int, list[Omission]])


class ModelSelection:
    """Selects the units of one text by calls of a compression recipe; `call`: the request that all its calls share."""

    def __init__(self, calls: CompressionCalls, call: CallRequest, loaded: LoadedRecipe, counter: TokenMeasure) -> None:
        self._calls, self._call, self._loaded = calls, call, loaded
        self._counter, self._count = counter, counter.count

    async def compress(self, contract: CompressionContract) -> PieceTexts | None:
        """The text within its target; None where the model selected nothing.

        That is: there are no units to select, the text is too long for the model, or no answer names units. Raises CallFaultError where
        the model is down.
        """
        request = contract.request
        stretches = self._stretches(request.text, request.target)
        available_tokens = request.target - sum(s.tokens for s in stretches if not s.reading)
        pieces = [piece for stretch in stretches for piece in stretch.pieces]
        if not 0 < len(pieces) <= MAX_CALLS or available_tokens <= 0:
            return None
        share = available_tokens / sum(s.tokens for s in stretches if s.reading)
        choices = await gather_or_cancel(self._ask_choice(piece, int(share * piece.tokens)) for piece in pieces)
        by_model = sum(bool(choice.orders) for choice in choices)
        if not by_model:
            return None
        choice_of_piece = dict(zip(pieces, choices, strict=True))
        return PieceTexts("".join(self._render(s, choice_of_piece, share) for s in stretches), by_model, len(pieces) - by_model)

    def _stretches(self, text: str, target: int) -> tuple[_Stretch, ...]:
        """The stretches of a text, those that may be shortened with their pieces for the model."""
        size = self._loaded.recipe.token_budget.input - FRAME_TOKENS - self._count(self._call.query)
        stretches: list[_Stretch] = []
        for stretch in stretches_within(text, target, self._count):
            tokens = self._count(stretch.text)
            if stretch.is_fixed or tokens < _MIN_STRETCH_TOKENS:
                stretches.append(_Stretch(stretch.text, tokens))
                continue
            plain, omissions = without_marks(stretch.text)
            reading = read_text(plain)
            pieces = unit_pieces(reading.units, size=size, count=self._count)
            stretches.append(_Stretch(stretch.text, tokens, reading, pieces, omissions_by_unit(reading.units, omissions)))
        return tuple(stretches)

    async def _ask_choice(self, piece: UnitPiece, target: int) -> UnitChoice:
        """The model's choice of units in a piece."""
        document = InputDocument(self._loaded.recipe.input_docs[0], piece.text)
        variables = {"target_tokens": str(max(1, target))}
        result = await self._calls.ask(replace(self._call, documents=(document,), variables=variables))
        return read_choice(result.parsed, piece, target) if result else UnitChoice(refused="no answer")

    def _render(self, stretch: _Stretch, choice_of_piece: dict[UnitPiece, UnitChoice], share: float) -> str:
        """A stretch with its selected units in `share` of its tokens."""
        if not stretch.reading:
            return stretch.text
        scores = reading_salience(stretch.reading)
        tokens = {unit.order: self._count(unit.text) for unit in stretch.reading.units}
        order = merged_order(
            [(ranked_choice(choice_of_piece[piece].orders, scores), piece.tokens * share) for piece in stretch.pieces], tokens
        )
        target = int(stretch.tokens * share) - 1
        text = select_units(stretch.reading, order, target, self._counter, salience=scores, earlier=stretch.marks)
        return with_original_margins(text, stretch.text)
