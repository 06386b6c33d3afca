# Every target works as the first command in a fresh clone: it builds .venv when needed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check bench figures clean

demo: .venv/installed
	$(BIN)/rldp demo

test: .venv/installed
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: .venv/installed
	$(BIN)/ruff check src tests benchmarks tools
	$(BIN)/ruff format --check src tests benchmarks tools
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/installed
	$(BIN)/python -m benchmarks

# the figures of the paper in docs/figures; what is there already is not computed again
figures: .venv/installed
	$(BIN)/rldp reproduce -o docs/figures

clean:
	rm -rf .venv build rldp-demo rldp-figures docs/figures/work

# uv when it is on the PATH, the standard library's venv and pip otherwise
.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "rldp needs Python 3.11 or newer; set PYTHON=...")'
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python $(PYTHON) .venv && \
		uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[dev]'; \
	else \
		$(PYTHON) -m venv .venv && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'; \
	fi
	@if command -v java >/dev/null 2>&1; then $(MAKE) --no-print-directory spark; fi
	@touch $@

# Spark is large and needs Java; without it everything else works and its tests are skipped
.PHONY: spark
spark:
	@if command -v uv >/dev/null 2>&1; then \
		uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[spark]'; \
	else \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[spark]'; \
	fi || echo "pyspark could not be installed: the tests with Spark will be skipped"
