"""Outcomes of recipe tests as JUnit XML, which build servers read. Knows the format; runs nothing."""

from collections.abc import Sequence
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pandora_dagster.governance.testing import RecipeTestOutcome


def junit_xml(outcomes: Sequence[RecipeTestOutcome]) -> str:
    """One `testsuite` a recipe, one `testcase` a test, its faults as one `failure`."""
    root = Element("testsuites", tests=str(len(outcomes)), failures=str(sum(not o.passed for o in outcomes)))
    for recipe, of_recipe in groupby(outcomes, key=lambda outcome: outcome.recipe):
        found = list(of_recipe)
        suite = SubElement(root, "testsuite", name=recipe, tests=str(len(found)), failures=str(sum(not o.passed for o in found)))
        for outcome in found:
            case = SubElement(suite, "testcase", classname=f"{recipe}@{outcome.version}", name=_plain(outcome.test))
            case.set("time", f"{outcome.seconds:.3f}")
            if outcome.faults:
                SubElement(case, "failure", message=_plain(outcome.faults[0])).text = _plain("\n".join(outcome.faults))
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _plain(text: str) -> str:
    """Without the control characters that XML cannot hold, a model's answer can."""
    return "".join(c for c in text if c in "\t\n\r" or (c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff"))
