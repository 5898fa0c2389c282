"""A query over its limits, in a pack only: the person's words stay verbatim, pasted blocks travel as attached documents.

Knows the input of one call; context.md on the disk keeps every word (DECISIONS 3).
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from pandora_dagster.contracts.calls import InputDocument
from pandora_dagster.execution.budgets import TokenCountFunction
from pandora_dagster.execution.inputs import CallInputs
from pandora_dagster.text.pasted import PastedBlock, split_pasted
from pandora_dagster.text.sections import escape_headings

MIN_ATTACHED_TOKENS = 60
"""Tokens under which a pasted block stays among the words: a reference saves nothing there."""


def with_attachments(inputs: CallInputs, count: TokenCountFunction) -> CallInputs:
    """The input with every pasted block once, as a document that may be compressed; as it is where nothing was pasted."""
    words, blocks = split_pasted(inputs.query, least=MIN_ATTACHED_TOKENS, count=count)
    if not blocks:
        return inputs
    documents = tuple(_reference_blocks(document, blocks) for document in inputs.documents)
    attached = tuple(InputDocument(block.name, block.text) for block in blocks)
    return replace(inputs, query=words, documents=(*documents, *attached))


def _reference_blocks(document: InputDocument, blocks: Sequence[PastedBlock]) -> InputDocument:
    """A document that repeats the query (an analysis in JSON) refers to its blocks as the words do."""
    text = document.text
    for block in blocks:
        for spelled in (block.text, escape_headings(block.text), json.dumps(block.text, ensure_ascii=False)[1:-1], json.dumps(block.text)[1:-1]):
            text = text.replace(spelled, block.reference)
    return replace(document, text=text)
