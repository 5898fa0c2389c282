from pandora_dagster.compression.content_detection import detect_content_type
from pandora_dagster.compression.verification.omission_rules import ZONE_RULE
from pandora_dagster.compression.verification.text_facts import find_facts
from pandora_dagster.contracts.enums import ContentType
from tests.documents.webpages.pages import read

PAGE = """<html lang="en"><body><main><h1>Aurora desk lamp</h1><p>The Aurora costs 49 euros and weighs 800 g in its box.</p>
<p style="display:none">The Borealis costs 7 euros today.</p></main></body></html>"""


def test_hidden_text_of_a_page_may_be_left_out_and_its_content_may_not() -> None:
    text = read(PAGE).model_dump_json()
    facts = find_facts(text).facts
    assert {fact.rule for fact in facts if "7 euros" in fact.text} == {ZONE_RULE}
    assert {fact.rule for fact in facts if "49 euros" in fact.text} == {""}
    assert detect_content_type("page_doc_1", text) is ContentType.PAGE_DOC
