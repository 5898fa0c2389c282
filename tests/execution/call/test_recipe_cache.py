"""What an executor remembers between calls."""

from typing import Any

from pandora_dagster.execution.call.prompt_packs import LruCache, RecipeCache


def test_only_the_most_recently_used_values_stay() -> None:
    """The oldest unused value goes first; a known one is not made again."""
    made: list[int] = []
    kept: LruCache[int] = LruCache(2)
    for key in (1, 2, 1, 3, 1, 2):
        kept.get(key, lambda key=key: made.append(key) or key)
    assert made == [1, 2, 3, 2]


def test_shared_parts_are_counted_once_per_version_and_prompts(make_recipe: Any) -> None:
    """A second call of the same recipe counts nothing; other prompt texts count anew; a new version compiles its schema anew."""
    counted: list[str] = []
    cache = RecipeCache(lambda text: counted.append(text) or len(text.split()))
    recipe = make_recipe()
    first = cache.shared_parts(recipe, ("one",))
    before = len(counted)
    assert cache.shared_parts(recipe, ("one",)) is first and len(counted) == before
    assert cache.shared_parts(recipe, ("two",)) is not first
    assert [part.kind for part in first.parts] == ["policy", "role", "schema"]
    assert cache.validator(recipe) is cache.validator(recipe)
    assert cache.validator(recipe) is not cache.validator(recipe.model_copy(update={"version": "ffffffffffff"}))


def test_an_empty_policy_and_no_schema_leave_no_parts(make_recipe: Any) -> None:
    """What says nothing takes no place."""
    recipe = make_recipe(policy="", output_format="markdown", output_schema=None)
    shared = RecipeCache(len).shared_parts(recipe, ("role text",))
    assert [part.kind for part in shared.parts] == ["role", "schema"]
    assert RecipeCache(len).validator(recipe) is None
