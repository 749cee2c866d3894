# make demo   the main job, end to end, on the built-in robot
# make test   set up and run the tests
# make check  what continuous integration runs: tests, linter, formatter, types, architecture
# make pages  write the stubs and pages anew that follow from the code
# make bench  speed relative to other libraries
# make compare  estimators beside each other on simulated logs
# make papers  the five papers computed anew, in out/papers
# make site   the docs as a web site in out/site
# make dist   wheel and source archive in out/dist, checked, installed in a new environment, demo run from it
# make pythons  the wheel on every Python that is here, with the oldest and the newest packages: a table
# make test PYTHON=python3.13  the same targets with another Python, in an environment of its own
# make campaigns lists the long ones: attacks, real data, the papers' tables
PYTHON ?= python3
VENV := $(if $(filter python3,$(PYTHON)),.venv,.venv-$(notdir $(PYTHON)))
# the interpreter itself: where a version manager has it but does not offer it on the path, its newest one
FIND_PYTHON = $(shell $(PYTHON) -c 'import sys; print(sys.executable)' 2>/dev/null || \
	ls -d $${PYENV_ROOT:-$$HOME/.pyenv}/versions/*/bin/$(notdir $(PYTHON)) 2>/dev/null | tail -1)
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready-test
DEMO_STAMP := $(VENV)/.ready

CAMPAIGN := PYTHONPATH=.:tests $(BIN)/python tests/campaigns

# every rule that has a plain name is one
.PHONY: $(shell grep -oE '^[a-z][a-z-]*:' $(firstword $(MAKEFILE_LIST)) | tr -d :)

demo: $(DEMO_STAMP)
	$(BIN)/dynid demo --force

# one thread of BLAS for each of the two processes: on two cores, four would wait for one another
test: export OPENBLAS_NUM_THREADS = 1
test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy
	$(BIN)/mypy examples/0*.py
	$(BIN)/pyright --pythonpath $(BIN)/python

architecture: $(STAMP)
	$(BIN)/python -m pytest tests/test_architecture.py

check: test lint types architecture

pages: $(STAMP)
	$(BIN)/python tests/support/public_stub.py
	$(BIN)/python tests/support/api_reference.py
	PYTHONPATH=tests $(BIN)/python tests/support/findings_page.py
	PYTHONPATH=tests $(BIN)/python tests/support/terms_page.py
	PYTHONPATH=tests $(BIN)/python tests/support/references_page.py

screens: $(STAMP)
	PYTHONPATH=tests $(BIN)/python tests/support/screens_page.py

bench: $(VENV)/.ready-bench
	$(BIN)/python -m benchmarks.speed --json out/bench.json

compare: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.estimators

campaigns:
	@echo "attack                  broken files and logs, kills, strangers' records and names, with a fresh seed (SEED=7 repeats one; half an hour)"
	@echo "mutants                 60 random changes of numeric code, each run against the tests of its folder (COUNT=60 SEED=1)"
	@echo "diagnosis               21 faults planted in logs, clean logs, real logs, delays in loops: named, wrongly named, silent, accused"
	@echo "differential            random models against Pinocchio and MuJoCo"
	@echo "watch-hours             false alarms on 20 clean logs with friction that the model lacks (minutes)"
	@echo "fleet-cluster           1e8 samples on a Dask cluster of this machine: speed-up, memory, kills; SIZE=\"--samples 2e6 --files 16\" is short"
	@echo "fleet-kills             dynid fleet killed 60 times goes on and leaves nothing behind (minutes)"
	@echo "contacts                contacts on every link and hand guiding, with models that are a little wrong"
	@echo "controller              the example controller in C at 1 kHz"
	@echo "load-coverage           95 % intervals of loads by a sensor at three noises"
	@echo "online-speed            microseconds per sample of the estimators on line"
	@echo "closed-loops            IV and DIDIM with told and assumed control laws: errors, coverage, bias, time"
	@echo "actuators               servos and legs on real logs without torque: xl330, go2, so101 (minutes)"
	@echo "actuator-coverage       200 simulated servos and legs: intervals and open combinations (minutes)"
	@echo "emps                    every estimator on the slide EMPS, whose control law is known, writes docs/emps.md"
	@echo "real-data               six logs of real robots, writes docs/real-data.md"
	@echo "leave-one-robot-out     constants of rich friction chosen on five real robots, judged on the sixth (minutes)"
	@echo "simulated-friction      200 arms that move unlike their training; coverage of intervals (half an hour)"
	@echo "pythons                 the wheel on every Python that is here, oldest and newest packages, all commands (10 minutes)"

.PHONY: attack differential
SEED ?= $(shell date +%s)
mutants: $(STAMP)
	$(CAMPAIGN)/mutants.py $(COUNT) $(SEED)

attack: $(STAMP)
	PYTHONPATH=src $(BIN)/python -m tests.attacks --seed $(SEED)

.PHONY: diagnosis
diagnosis: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(CAMPAIGN)/diagnosis.py 100
	OPENBLAS_NUM_THREADS=1 $(CAMPAIGN)/diagnosis.py 300 clean
	OPENBLAS_NUM_THREADS=1 $(CAMPAIGN)/diagnosis.py delays 200
	OPENBLAS_NUM_THREADS=1 $(CAMPAIGN)/diagnosis.py real

differential: $(STAMP)
	$(BIN)/python -m tests.campaigns.differential_models --count 10000

watch-hours: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(CAMPAIGN)/watch_friction.py

contacts: $(STAMP)
	$(CAMPAIGN)/contacts.py

controller: $(DEMO_STAMP)
	$(BIN)/python examples/controller/run.py

load-coverage: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(CAMPAIGN)/load_coverage.py 200 $(SEED)

online-speed: $(STAMP)
	$(CAMPAIGN)/online_speed.py

closed-loops: $(STAMP)
	$(CAMPAIGN)/closed_loops.py

fleet-cluster: $(STAMP)
	$(CAMPAIGN)/fleet_cluster.py $(SIZE)

fleet-kills: $(STAMP)
	$(CAMPAIGN)/fleet_kills.py

actuators: $(STAMP)
	$(CAMPAIGN)/actuators_real.py

actuator-coverage: $(STAMP)
	$(CAMPAIGN)/actuator_coverage.py

emps: $(STAMP)
	$(CAMPAIGN)/emps.py

papers: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m papers

real-data: $(STAMP)
	$(CAMPAIGN)/real_data.py --write

leave-one-robot-out: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(CAMPAIGN)/leave_one_robot_out.py

simulated-friction: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(CAMPAIGN)/simulated_friction.py arms 200
	OPENBLAS_NUM_THREADS=1 $(CAMPAIGN)/simulated_friction.py coverage 200

site: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	$(BIN)/python tests/support/gallery.py out/site/gallery
	@echo "$(BIN)/python -m http.server -d out/site"

pictures: $(STAMP)
	rm -rf out/gallery
	$(BIN)/python tests/support/gallery.py out/gallery --pictures

dist:
	$(FIND_PYTHON) tests/campaigns/pythons.py --dist

pythons:
	$(FIND_PYTHON) tests/campaigns/pythons.py

wheels:
	$(FIND_PYTHON) tests/campaigns/pythons.py --quick

picture: $(DEMO_STAMP)
	$(BIN)/dynid demo --force
	chromium --headless --no-sandbox --disable-gpu --disable-background-networking --hide-scrollbars --window-size=1100,1560 \
		--screenshot=docs/images/report.png "file://$(CURDIR)/out/demo/model/report.html"

$(VENV)/bin/python:
	$(FIND_PYTHON) -m venv $(VENV)

$(DEMO_STAMP): $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(STAMP): $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $@ $(DEMO_STAMP)

$(VENV)/.ready-bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]" || echo "some peers cannot be installed here"
	mkdir -p out
	touch $@

clean:
	rm -rf $(VENV) .venv-* build dist out
