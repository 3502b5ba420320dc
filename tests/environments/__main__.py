"""Run every released notebook, unfilled and solved, in one environment of the matrix.

python -m tests.environments a            a to g: see recipes.py and docs/environments.md
python -m tests.environments b 03_flash_forward      only these lessons
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from flashcourse.authoring.standalone import build_standalone
from tests.environments.execute import VERSIONS, kernel, run_code
from tests.environments.notebooks import released
from tests.environments.recipes import RECIPES, ROOT, Recipe, python_of
from tests.environments.trial import try_notebook

INSIDE = "FLASHCOURSE_NO_NETWORK"  # set once this runs where there is no network


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.environments", description=__doc__)
    parser.add_argument("environment", choices=sorted(RECIPES))
    parser.add_argument("lessons", nargs="*")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    arguments = parser.parse_args()
    recipe = RECIPES[arguments.environment]
    if recipe.standalone and INSIDE not in os.environ:
        return without_network(recipe)
    began = time.monotonic()
    python = Path(sys.executable) if not recipe.own else python_of(recipe)
    paths = [
        path
        for path in released(ROOT, recipe.standalone)
        if not arguments.lessons or path.name.split(".")[0] in arguments.lessons
    ]
    if not paths:
        sys.exit("There is no notebook to run: `flashcourse build` first.")
    print(f"Environment {recipe.name}: {recipe.title}", versions(python, recipe.gpu), sep="\n")
    sys.stdout.flush()
    # Spawned, not forked: a forked process inherits the client's sockets and hangs on them.
    with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as workers:
        found = list(workers.map(partial(try_notebook, python, recipe.gpu), paths))
    wrong = sum(found)
    seconds = time.monotonic() - began
    print(f"{len(paths)} notebooks, unfilled and solved: {wrong} problems, {seconds:.0f} s")
    return 1 if wrong else 0


def versions(python: Path, gpu: bool) -> str:
    with kernel(python, gpu) as client:
        return run_code(client, VERSIONS)


def without_network(recipe: Recipe) -> int:
    """Make the standalone notebooks and the environment, then run this again with no network."""
    build_standalone(ROOT)
    python_of(recipe)
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        sys.exit("Environment d needs bubblewrap: apt-get install bubblewrap")
    box = [bwrap, "--dev-bind", "/", "/", "--unshare-net", "--die-with-parent"]
    command = [sys.executable, "-m", "tests.environments", *sys.argv[1:]]
    return subprocess.run([*box, *command], cwd=ROOT, env={**os.environ, INSIDE: "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
