"""Changes what is in production in a forked child that dies at its n-th disk step, for every n. A script: no threads, so it may fork.

Arguments: a prepared store root, a folder for the copies. Prints how many disk steps it takes; `<copies>/0` is the finished root.
"""

import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

from pandora_dagster.contracts.recipe_governance import ProductionChange
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.stores.records.recipe_version_files import RecipeVersionFiles
from tests.stores.turns.killed_commit import dying_at

RECIPE = "pipeline/phase1_reflection"
NOW = datetime(2026, 1, 4, 15, tzinfo=UTC)


def store(root: Path) -> RecipeVersionFiles:
    return RecipeVersionFiles(root, clock=lambda: NOW)


def act(root: Path) -> None:
    """A version that is new, and one that is pinned over it."""
    versions = store(root)
    first = versions.versions(RECIPE)[0]
    loaded = open_recipes().load(RECIPE)
    versions.keep(loaded)
    change = ProductionChange(at="2026-01-04T15:00:00Z", kind="rollback", version=first, who="ann", why="worse")
    versions.change(RECIPE, change, since=versions.production(RECIPE), pinned=first)


def main() -> None:
    prepared, copies = Path(sys.argv[1]), Path(sys.argv[2])
    number = 0
    while True:
        number += 1
        shutil.copytree(prepared, copies / str(number))
        child = os.fork()
        if child == 0:
            dying_at(number)
            act(copies / str(number))
            os._exit(0)
        if os.WIFEXITED(os.waitpid(child, 0)[1]):
            break
    (copies / str(number)).rename(copies / "0")
    sys.stdout.write(f"{number - 1}\n")


if __name__ == "__main__":
    main()
