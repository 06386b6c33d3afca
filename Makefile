# Every target works as the first command in a fresh clone: it builds .venv when needed.
PYTHON ?= python3
BIN := .venv/bin
WHEEL := build/wheel
LOOPS := $(wildcard src/rldp/compiled/*.[ch])

# The tests start hundreds of Python processes: what the first one compiles serves all others
unexport PYTHONDONTWRITEBYTECODE

# One thread of linear algebra for each process: two of them share two cores
test test-quick test-whole: export OPENBLAS_NUM_THREADS = 1
test-whole: export RLDP_WHOLE_TESTS = 1

.PHONY: demo test test-quick test-whole test-oldest check wheel dist docs bench ablation figures clean

demo: .venv/demo
	$(BIN)/rldp demo --force

# three workers for two cores: tests wait for the processes and browsers that they start
test: .venv/installed
	$(BIN)/python -m pytest -n 3 --dist worksteal

# every case of tests with hundreds of them, of which test takes about a quarter
test-whole: test

# all but what takes half a second or more
test-quick: .venv/installed
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

check: .venv/installed
	$(BIN)/ruff check src tests benchmarks tools docs
	$(BIN)/ruff format --check src tests benchmarks tools docs
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/validate-pyproject pyproject.toml

# the demo with the oldest versions that are supported
test-oldest:
	rm -rf build/oldest && $(PYTHON) -m venv build/oldest
	build/oldest/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
		-c packaging/oldest.txt '.[plot]'
	cd build/oldest && bin/rldp demo

# what a release consists of, checked as the package index would
dist:
	rm -rf build/dist build/lib* build/temp* build/bdist*
	$(PYTHON) -m venv build/tools
	build/tools/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		build check-wheel-contents twine
	build/tools/bin/python -m build --outdir build/dist . >build/dist.log 2>&1 || (tail -20 build/dist.log; exit 1)
	build/tools/bin/twine check --strict build/dist/*
	build/tools/bin/check-wheel-contents build/dist/*.whl

# the wheel alone, in an environment of its own and away from the sources, runs the demo
wheel:
	rm -rf build/lib* build/temp* build/bdist* $(WHEEL)
	@if uv --version >/dev/null 2>&1; then uv build --quiet --wheel --out-dir $(WHEEL); \
	else $(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir $(WHEEL) .; fi
	$(call install,$(WHEEL)/venv,"$$(echo $(WHEEL)/*.whl)[plot]")
	cd $(WHEEL) && venv/bin/rldp demo

# the site in build/site; every warning is an error
docs: .venv/docs
	$(BIN)/sphinx-build -q -W --keep-going -c docs -b html . build/site
	@echo "build/site/index.html"

bench: .venv/installed
	$(BIN)/python -m benchmarks

# what every part and constant of the search is worth; QUICK=--quick for a selection
ablation: .venv/installed
	$(BIN)/python -m benchmarks ablation $(QUICK)

# the figures of the paper in docs/figures; what is there already is not computed again
figures: .venv/installed
	$(BIN)/rldp reproduce -o docs/figures --force

clean:
	rm -rf .venv build rldp-demo rldp-figures docs/figures/work

# $(call install,ENVIRONMENT,WHAT): with uv where it runs, with venv and pip otherwise.
# Nothing is compiled ahead: most modules of most packages are never imported.
define install
@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "rldp needs Python 3.11 or newer; set PYTHON=...")'
@if uv --version >/dev/null 2>&1; then \
	uv venv --quiet --allow-existing --python $(PYTHON) $(1) && \
	uv pip install --quiet --python $(1)/bin/python -c constraints.txt $(2); \
else \
	$(PYTHON) -m venv $(1) && \
	$(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt $(2); \
fi
endef

# what the demo needs
.venv/demo: pyproject.toml constraints.txt $(LOOPS)
	$(call install,.venv,-e '.[plot]')
	@touch $@

# and all the rest
.venv/installed: pyproject.toml constraints.txt $(LOOPS)
	$(call install,.venv,-e '.[dev]')
	@if command -v java >/dev/null 2>&1; then $(MAKE) --no-print-directory spark || \
		echo "pyspark could not be installed: the tests with Spark will be skipped"; fi
	@touch .venv/demo $@

# what the site needs; test-only parts stay out of it
.venv/docs: pyproject.toml constraints.txt $(LOOPS)
	$(call install,.venv,-e '.[docs]')
	@touch .venv/demo $@

# Spark is large and needs Java; without it everything else works and its tests are skipped
.PHONY: spark
spark:
	$(call install,.venv,-e '.[spark]')
