# make demo   build the notebooks, grade the sample class, write the feedback
# make test   the linters, the builder's check and every test
# make test-slow   thousands of submissions, kills at random moments, every lesson in a browser
# make lab    JupyterLab at the student's notebooks (COURSE_LANG=zh for the Chinese ones)
# make env-a (b … g)  every released notebook in one environment of docs/environments.md
# make env-gpu  records and marks on a GPU, for a machine that has one
# make bench  the benchmarks; their results go to benchmarks/RESULTS.md
# Each sets up .venv first. PYTHON=python3.12 chooses another Python (3.10 or newer).

PYTHON ?= python3
VENV ?= .venv
COURSE_LANG ?= en
BIN := $(abspath $(VENV)/bin)
READY := $(VENV)/.ready
# nbgrader calls other programs of the environment by name.
export PATH := $(BIN):$(PATH)

.PHONY: setup demo test test-slow lint lab build bench clean env-gpu

setup: $(READY)

$(READY): requirements.txt pyproject.toml docs/lab-settings.json
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 10) and 'Python 3.10 or newer is needed')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -r requirements.txt
	mkdir -p $(VENV)/share/jupyter/lab/settings
	cp docs/lab-settings.json $(VENV)/share/jupyter/lab/settings/overrides.json
	touch $@

build: $(READY)
	flashcourse build

demo: build
	python examples/demo.py

lint: $(READY)
	ruff check .
	ruff format --check .
	mypy

test: lint
	flashcourse build --check
	OMP_NUM_THREADS=1 pytest -n 2 --dist loadfile

test-slow: $(READY)
	pytest -m slow

env-a env-b env-c env-d env-e env-f env-g: env-%: $(READY)
	python -m tests.environments $*

env-gpu: $(READY)
	python -m tests.environments.gpu

lab: $(READY)
	jupyter lab --LabApp.default_url=/lab/tree/release/$(COURSE_LANG)

bench: $(READY)
	python benchmarks/bench_grading.py
	python benchmarks/bench_player.py

clean:
	rm -rf $(VENV) build dist .cache
