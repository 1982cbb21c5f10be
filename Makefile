# Everything that a developer or CI does has one name here; `make` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 2
CLUSTER ?= .cluster
MINUTES ?= 10
KUBERNETES ?= 1.37

.DEFAULT_GOAL := help
.PHONY: help install check format unit unit-newest test e2e-devices e2e-queues e2e-legacy e2e-previous e2e-oldest crash-test hostile-test chaos demo image images image-lock bench proto crds manifests reference docs lock advisories cluster-up cluster-down clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

has_python = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed: make PYTHON=/path/to/python3"; exit 1; }

# A fresh Debian has no ensurepip, so its venv package is installed when a venv cannot be made.
$(READY): requirements-dev.lock pyproject.toml
	@$(has_python)
	@$(PYTHON) -c 'import ensurepip' 2> /dev/null || { echo "Installing the Debian package python3-venv ..."; { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv; } > /dev/null; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || $(BIN)/python -m ensurepip > /dev/null
	@echo "Installing the locked packages into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

check: $(READY) ## Format, lint, types, import contracts, purity, stale stubs, schemas, manifests (changes nothing)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet --no-cache .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest -q tests/test_purity.py
	$(BIN)/python -m tests.stubs --check
	$(BIN)/python -m tests.crds --check
	$(BIN)/python -m tests.reference --check
	@PYTHONPATH=deploy/local $(BIN)/python -m tests.manifests --check

format: $(READY) ## Format and repair what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

unit: $(READY) ## Tests that need no cluster, without those that draw by chance or start processes
	$(BIN)/pytest -q -m "not e2e and not long" -n $(WORKERS)

# Tests on another Python than that of the venv: both ends of what the product runs on.
NEWEST := .venv-newest
NEWEST_PYTHON ?= $(shell for minor in 14 13 12; do for one in $(HOME)/.pyenv/versions/3.$$minor.*/bin/python3 python3.$$minor; do $$one -c "" 2> /dev/null && command -v $$one && exit; done; done)

$(NEWEST)/.ready: requirements-dev.lock pyproject.toml
	@test -n "$(NEWEST_PYTHON)" || { echo "No newer Python is found here: make unit-newest NEWEST_PYTHON=/path/to/python3"; exit 1; }
	@rm -rf $(NEWEST) && $(NEWEST_PYTHON) -m venv $(NEWEST)
	@echo "Installing the locked packages into $(NEWEST) ..."
	@$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.lock
	@$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

unit-newest: $(NEWEST)/.ready ## The same on the newest Python that is found (NEWEST_PYTHON=/path/to/python3)
	$(NEWEST)/bin/python --version
	$(NEWEST)/bin/pytest -q -m "not e2e and not long" -n $(WORKERS)

test: $(READY) ## All tests, those on the real Kubernetes included
	$(BIN)/pytest -q -m "not e2e" -n $(WORKERS)
	@echo "Stories on three clusters at one time; what they print comes when they end, in 45 to 60 minutes ..."
	@rm -rf .artifacts/rights
	@MOORAGE_RIGHTS=.artifacts/rights $(MAKE) --no-print-directory --jobs=3 --output-sync=target e2e-devices e2e-queues e2e-legacy
	@PYTHONPATH=deploy/local $(BIN)/python -m tests.e2e.rights .artifacts/rights

# Clusters that do not meet: most of a story is waiting.
QUEUE_STORIES := $(addprefix tests/e2e/,binder failover plugin sharing webhook)

OLDEST_STORIES := $(addprefix tests/e2e/driver/test_,bad_nodes.py claims.py device_configs.py failures.py pods.py told_devices.py upstream.py) tests/e2e/test_upgrade.py
# Slots, taints, extended resources and health in a pod's status are switched off there, see INSTALL.md.
NOT_IN_OLDEST := with_slots or on_the_network or comes_back_is_offered_again or written_for_the_device_plugin or extended_resource or status_of_a_pod or health_of_a_device_counts or without_dra

# On the version before the newest, or on the way from it to the newest.
UPGRADE_STORIES := tests/e2e/previous
PREVIOUS_STORIES := $(addprefix tests/e2e/,binder driver sharing test_upgrade.py)
# Stories whose clusters are of the newest version whatever is asked for.
NOT_IN_PREVIOUS := with_1_34s_features

RELEASE_STORIES := $(addprefix tests/,e2e/test_air_gapped.py e2e/test_chaos.py e2e/test_documentation.py e2e/test_helm.py e2e/test_newcomer.py e2e/test_own_control_plane.py e2e/test_upgrade.py)

e2e-devices: $(READY)
	$(BIN)/pytest -q -m e2e $(addprefix --ignore=,$(QUEUE_STORIES) $(RELEASE_STORIES) $(UPGRADE_STORIES)) --ignore-glob='*/legacy/test_[!fp]*'

e2e-queues: $(READY)
	$(BIN)/pytest -q -m e2e $(QUEUE_STORIES)

e2e-legacy: $(READY)
	$(BIN)/pytest -q -m e2e tests/e2e/legacy $(RELEASE_STORIES) --ignore-glob='*/test_[fp]*'

# Built when asked for only. Not run there: the webhook, failover, the chart and the API server's
# own, which meet no part of Kubernetes that differs; the newest and the oldest meet those.
e2e-previous: $(READY) ## Stories on Kubernetes 1.36, and on the way from it to 1.37
	MOORAGE_KUBERNETES=1.36 $(BIN)/pytest -q -m e2e $(PREVIOUS_STORIES) -k "not ($(NOT_IN_PREVIOUS))"
	$(BIN)/pytest -q -m e2e $(UPGRADE_STORIES)

# Seen again with each version of ours: its Kubernetes takes ten minutes to build, and is kept.
e2e-oldest: $(READY) ## Stories and demo on Kubernetes 1.34, the first with DRA's v1
	MOORAGE_KUBERNETES=1.34 $(BIN)/pytest -q -m e2e $(OLDEST_STORIES) -k "not ($(NOT_IN_OLDEST))"
	$(MAKE) --no-print-directory demo OLDEST=1

crash-test: $(READY) ## The driver killed before each of its system calls (some minutes)
	MOORAGE_CRASHES=all $(BIN)/pytest -q tests/driver/crashes -n $(WORKERS)

hostile-test: $(READY) ## Nonsense at the driver's sockets, ten minutes at each
	MOORAGE_HOSTILE_SECONDS=600 $(BIN)/pytest -q tests/driver/hostile -n $(WORKERS)

chaos: $(READY) ## Chance on a real cluster, and an independent checker (MINUTES=10 SEED= KUBERNETES=1.37 UPGRADES=1 CLOCK=1 TENANT=1)
	@PYTHONPATH=deploy/local $(BIN)/python -m tests.chaos --minutes $(MINUTES) --kubernetes $(KUBERNETES) $(if $(SEED),--seed $(SEED)) $(if $(UPGRADES),--upgrades) $(if $(CLOCK),--clock) $(if $(TENANT),--tenant)

demo: ## The main job on a real cluster (KEEP=1 keeps it, LEGACY=1: without DRA, OLDEST=1: on 1.34)
	@$(call beside_the_venv,$(if $(LEGACY),1.33,$(if $(OLDEST),1.34,1.37)),moorage_demo $(if $(KEEP),--keep) $(if $(LEGACY),--legacy) $(if $(OLDEST),--oldest))

# The programs of a cluster are compiled while packages are installed; the second command waits for them.
beside_the_venv = $(has_python); PYTHONPATH=deploy/local $(PYTHON) -m local_cluster.go_toolchain $(1) & \
	$(MAKE) --no-print-directory $(READY) && PYTHONPATH=deploy/local $(BIN)/python -m $(2); \
	status=$$?; wait; exit $$status

screenshots: $(READY) ## Pictures of the dashboard on a real cluster, for the documentation
	@MOORAGE_SCREENSHOTS=docs/pictures $(BIN)/pytest -q -m e2e tests/e2e/sharing/test_dashboard.py -k test_pictures

proto: $(READY) ## Generate the stubs of the kubelet's contracts
	$(BIN)/python -m tests.stubs --write

crds: $(READY) ## Generate the schemas of the definitions in deploy/crds
	$(BIN)/python -m tests.crds --write

reference: $(READY) ## Generate the pages of fields and flags in docs/reference
	$(BIN)/python -m tests.reference --write

docs: $(READY) ## Make the site of these pages (.artifacts/site/index.html); a warning is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -c docs . .artifacts/site

manifests: $(READY) ## Render the chart into deploy/manifests, deploy/policies and deploy/webhook
	@PYTHONPATH=deploy/local $(BIN)/python -m tests.manifests --write

image: $(READY) ## Build the container image (.artifacts/moorage.tar)
	@mkdir -p .artifacts
	@PYTHONPATH=deploy/local $(BIN)/python -m local_cluster.image_build -o .artifacts/moorage.tar

images: $(READY) ## Build the image for all platforms, with SBOM and provenance (.artifacts/images)
	@PYTHONPATH=deploy/local $(BIN)/python -m local_cluster.image_release -o .artifacts/images

image-lock: $(READY) ## Pin the newest Debian packages of the image
	@PYTHONPATH=deploy/local $(BIN)/python -m local_cluster.image_release --lock

bench: $(READY) ## From plug to ResourceSlice, beside the least that a driver must do
	@PYTHONPATH=deploy/local $(BIN)/python -m bench.hotplug

lock: $(READY) ## Resolve the dependencies anew into the two lock files
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group dev pyproject.toml -c requirements.lock -o requirements-dev.lock

advisories: $(READY) ## Look for flaws that PyPI knows of in the locked packages (network; no part of the tests)
	$(BIN)/uv tool run pip-audit --strict --require-hashes --disable-pip -r requirements.lock

install: ## A throw-away Kubernetes with Moorage and a first Queue; again: an upgrade
	@$(call beside_the_venv,1.37,moorage_demo.install --dir $(CLUSTER))

cluster-up: $(READY) ## Start the throw-away Kubernetes (see deploy/local)
	@PYTHONPATH=deploy/local $(BIN)/python -m local_cluster --dir $(CLUSTER) up

cluster-down: $(READY) ## Stop it and leave nothing behind
	@PYTHONPATH=deploy/local $(BIN)/python -m local_cluster --dir $(CLUSTER) down --purge

clean: cluster-down ## Stop the cluster, remove the venv and all caches of this checkout
	rm -rf $(VENV) $(NEWEST) .artifacts .mypy_cache .ruff_cache .pytest_cache .hypothesis
