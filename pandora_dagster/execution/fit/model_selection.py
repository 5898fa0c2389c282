"""Compression by a model that chooses (`compression.mode: select`): it reads numbered units and answers with the numbers to keep.

The result is verbatim: code adds what the chosen units need, leaves out what is over the target from the end of the model's order, fills
what is left by the structural selection, and renders as the structural compressor does. Nothing has to be judged. An answer that is no
choice leaves its piece to the structural selection.
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
from pandora_dagster.execution.fit.text_stretches import text_stretches

_SMALLEST = 40
"""Tokens below which a stretch stays whole: marks would take what is saved."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A stretch of the text; without a reading it stays verbatim. `marks` are those of earlier compressions, by unit."""

    text: str
    tokens: int
    reading: TextReading | None = None
    pieces: tuple[UnitPiece, ...] = ()
    marks: dict[int, list[Omission]] = field(default_factory=dict[int, list[Omission]])


class ModelSelection:
    """The choice of units in one text by calls of a compression recipe; `call` is what all its calls share."""

    def __init__(self, calls: CompressionCalls, call: CallRequest, loaded: LoadedRecipe, counter: TokenMeasure) -> None:
        self._calls, self._call, self._loaded = calls, call, loaded
        self._counter, self._count = counter, counter.count

    async def compress(self, contract: CompressionContract) -> PieceTexts | None:
        """The text within its target; None where the model chose nothing: no unit is to be chosen, the text is too long for it, or no
        answer is a choice. Raises CallFaultError where the model is down."""
        request = contract.request
        stretches = self._stretches(request.text)
        room = request.target - sum(s.tokens for s in stretches if not s.reading)
        pieces = [piece for stretch in stretches for piece in stretch.pieces]
        if not 0 < len(pieces) <= MAX_CALLS or room <= 0:
            return None
        share = room / sum(s.tokens for s in stretches if s.reading)
        choices = await gather_or_cancel(self._choice(piece, int(share * piece.tokens)) for piece in pieces)
        by_model = sum(bool(choice.orders) for choice in choices)
        if not by_model:
            return None
        chosen = dict(zip(pieces, choices, strict=True))
        return PieceTexts("".join(self._shortened(s, chosen, share) for s in stretches), by_model, len(pieces) - by_model)

    def _stretches(self, text: str) -> tuple[_Stretch, ...]:
        size = self._loaded.recipe.token_budget.input - FRAME_TOKENS - self._count(self._call.query)
        found: list[_Stretch] = []
        for stretch in text_stretches(text):
            tokens = self._count(stretch.text)
            if stretch.is_fixed or tokens < _SMALLEST:
                found.append(_Stretch(stretch.text, tokens))
                continue
            plain, omissions = without_marks(stretch.text)
            reading = read_text(plain)
            pieces = unit_pieces(reading.units, size=size, count=self._count)
            found.append(_Stretch(stretch.text, tokens, reading, pieces, omissions_by_unit(reading.units, omissions)))
        return tuple(found)

    async def _choice(self, piece: UnitPiece, target: int) -> UnitChoice:
        document = InputDocument(self._loaded.recipe.input_docs[0], piece.text)
        variables = {"target_tokens": str(max(1, target))}
        result = await self._calls.ask(replace(self._call, documents=(document,), variables=variables))
        return read_choice(result.parsed, piece, target) if result else UnitChoice(refused="no answer")

    def _shortened(self, stretch: _Stretch, chosen: dict[UnitPiece, UnitChoice], share: float) -> str:
        if not stretch.reading:
            return stretch.text
        scores = reading_salience(stretch.reading)
        tokens = {unit.order: self._count(unit.text) for unit in stretch.reading.units}
        order = merged_order([(ranked_choice(chosen[piece].orders, scores), piece.tokens * share) for piece in stretch.pieces], tokens)
        target = int(stretch.tokens * share) - 1
        text = select_units(stretch.reading, order, target, self._counter, salience=scores, earlier=stretch.marks)
        return with_original_margins(text, stretch.text)
