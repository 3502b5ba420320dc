"""The environments of the matrix, and how each is made.

a  JupyterLab 4 and ipywidgets 8: the environment that runs this
b  Colab's versions as far as they install here; torch is shared with (a)
c  the oldest versions that pyproject.toml allows, on Python 3.10
d  what a learner behind a firewall has: no flashcourse, no network; torch is shared with (a)
e  as (a), with a GPU in name only: whether lessons and checks keep to one device
f  (b) in full, on Colab's own Python and torch
g  ModelScope's Python and torch, and the newest of what its image leaves open

They lie in .cache/environments and are made again when the recipe changes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import Requirement

from tests.environments.share import link_packages, normal

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "environments"


@dataclass(frozen=True)
class Recipe:
    """name: a to g. pins: installed with pip. shared: linked from this environment, with all that
    they need, unless pinned. python: the interpreter's name, None for the one that runs this.
    wheel: whether flashcourse is installed, as a wheel. standalone: carried notebooks, no network.
    gpu: kernels start with the GPU of pretend_cuda.py.
    """

    name: str
    title: str
    pins: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    python: str | None = None
    wheel: bool = True
    standalone: bool = False
    own: bool = field(default=True)
    gpu: bool = False


def oldest() -> tuple[str, ...]:
    """The lower bounds of the student's dependencies, as pins."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert listed, "pyproject.toml lists no dependencies"
    pins = []
    for line in re.findall(r'"([^"]+)"', listed[1]):
        requirement = Requirement(line)
        floor = next(s.version for s in requirement.specifier if s.operator == ">=")
        # A bound such as 7.7 stands for its first release.
        pins.append(f"{requirement.name}=={floor}" + (".0" if floor.count(".") < 2 else ""))
    return tuple(pins)


# googlecolab/backend-info, August 2026.
COLAB = (
    "ipython==7.34.0",
    "ipykernel==6.17.1",
    "ipywidgets==7.7.1",
    "widgetsnbextension==3.6.10",
    "numpy==2.1.3",
    "matplotlib==3.10.0",
    "jupyter_client==7.4.9",
)

RECIPES = {
    "a": Recipe("a", "JupyterLab 4, ipywidgets 8", own=False, wheel=False),
    "b": Recipe(
        "b",
        "Colab's versions",
        pins=COLAB,
        shared=("torch",),
    ),
    "c": Recipe(
        "c",
        "the oldest versions allowed",
        pins=(*oldest(), "ipykernel==6.17.1", "jupyter_client==7.4.9"),
        python="python3.10",
    ),
    "d": Recipe(
        "d",
        "standalone notebooks, no flashcourse, no network",
        shared=("torch", "numpy", "matplotlib", "ipywidgets", "ipython", "ipykernel"),
        wheel=False,
        standalone=True,
    ),
    "f": Recipe(
        "f", "Colab's versions in full", pins=(*COLAB, "torch==2.11.0"), python="python3.13"
    ),
    "g": Recipe(
        "g",
        "ModelScope's versions",
        pins=("torch==2.10.0", "numpy", "matplotlib", "ipywidgets", "ipykernel"),
        python="python3.12",
    ),
    "e": Recipe("e", "as a, with a GPU in name only", own=False, wheel=False, gpu=True),
}


def python_of(recipe: Recipe) -> Path:
    """The environment's interpreter; the environment is made if it is not there as wanted."""
    if not recipe.own:
        return Path(sys.executable)
    home = CACHE / recipe.name
    python, stamp = home / "bin" / "python", home / "recipe.txt"
    wanted = f"{recipe}\n{sys.version}\n"
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        make(recipe, home)
        stamp.write_text(wanted, encoding="utf-8")
    if recipe.wheel:
        install_wheel(python)
    return python


def make(recipe: Recipe, home: Path) -> None:
    """A fresh environment by the recipe. Exits with a message if pip can't."""
    shutil.rmtree(home, ignore_errors=True)
    if recipe.python is None:
        venv.create(home, with_pip=bool(recipe.pins), symlinks=True)
    else:
        interpreter = shutil.which(recipe.python)
        if interpreter is None:
            sys.exit(f"Environment {recipe.name} needs {recipe.python} on the PATH.")
        run(interpreter, "-m", "venv", str(home))
    python = home / "bin" / "python"
    if recipe.pins:
        run(str(python), "-m", "pip", "install", "--quiet", *recipe.pins)
    if recipe.shared:
        pinned = [normal(re.split("==", pin)[0]) for pin in recipe.pins]
        links = link_packages(home / "shared", recipe.shared, without=pinned)
        site = next(home.glob("lib/python*/site-packages"))
        # After the environment's own packages, so that the pinned ones win.
        (site / "zz_shared.pth").write_text(f"{links}\n", encoding="utf-8")


def install_wheel(python: Path) -> None:
    """Install this flashcourse as a student gets it: from a wheel, its data files within."""
    wheels = CACHE / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
        "--wheel-dir", str(wheels), str(ROOT))  # fmt: skip
    wheel = next(wheels.glob("flashcourse-*.whl"))
    run(
        str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", str(wheel)
    )


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command[:6])} …\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
