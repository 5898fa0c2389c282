"""Which function of the embedded runtime answers which role of research."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.research.recipe_calls import READERS
from pandora_dagster.runtime.extractive.output_budget import Draft
from pandora_dagster.runtime.extractive.research import page_judgements
from pandora_dagster.runtime.extractive.roles import research_roles

RESEARCH_ROLES: Mapping[str, Callable[[PromptPack, TokenMeasure], Draft]] = MappingProxyType(
    {
        "strategy": research_roles.plan_research,
        "query_writer": research_roles.write_queries,
        "query_rewriter": research_roles.rewrite_queries,
        "result_selector": research_roles.select_results,
        "link_ranker": research_roles.rank_links,
        "injection_screen": research_roles.screen_units,
        **{recipe.partition("/")[2]: research_roles.extract_claims for recipe in READERS},
        "page_relevance": page_judgements.judge_relevance,
        "page_type": page_judgements.name_type,
        "zone_confidence": page_judgements.keep_zones,
        "extraction_validator": page_judgements.accept_reading,
        "pagination_finder": page_judgements.find_next_page,
        "source_credibility": research_roles.weigh_addresses,
        "vendor_selector": research_roles.weigh_addresses,
        "freshness_judge": research_roles.judge_freshness,
        "contradiction_finder": research_roles.find_contradictions,
        "claim_verifier": research_roles.verify_claims,
        "claim_merger": research_roles.merge_claims,
        "stop_judge": research_roles.judge_stop,
        "blocker_classifier": research_roles.classify_blockers,
        "record_summary": research_roles.summarize_record,
        "report_writer": research_roles.write_report,
    }
)
"""Recipe field `role` -> the function that answers it."""
