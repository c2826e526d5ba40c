SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# verify rewrites files that lint and the tests read: one target after the other, also with -j.
.NOTPARALLEL:

IMAGE ?= mcpl.dev/manager:latest
CONTAINER_TOOL ?= docker

# Versions of the tools are pinned in these modules and nowhere else.
CONTROLLER_GEN := go tool -modfile=hack/tools/go.mod controller-gen
GOLANGCI_LINT := go tool -modfile=hack/tools/lint/go.mod golangci-lint

# with-controlplane runs a command with the binaries of a control plane at hand.
with-controlplane = assets=$$(go run ./hack/controlplane) && KUBEBUILDER_ASSETS=$$assets

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "; print "Usage: make <target>"} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: clean
clean: ## Remove what was built here. The control plane in the user's cache stays.
	rm -rf bin

##@ Development

.PHONY: generate
generate: ## Write deepcopy code, CRDs and the manager's role from the markers in the code.
	@echo "generate: deepcopy code, CRDs and the manager's role"
	@$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...
	@$(CONTROLLER_GEN) crd paths=./api/... output:crd:dir=config/crd/bases
	@$(CONTROLLER_GEN) rbac:roleName=mcpl-manager paths="{./controllers/...,./cmd/...}" output:rbac:dir=config/rbac

.PHONY: fmt
fmt: ## Format the code and sort its imports.
	@$(GOLANGCI_LINT) fmt

.PHONY: lint
lint: ## Check the code, go vet included.
	@echo "lint: golangci-lint, compiled on first use, which takes about a minute"
	@$(GOLANGCI_LINT) run

.PHONY: verify
verify: ## Regenerate, and fail if that changes anything.
	@echo "verify: generated files are up to date"
	@snapshot() { find api config/crd/bases config/rbac -type f -exec cksum {} + | sort; }; \
	before=$$(snapshot); \
	$(MAKE) --no-print-directory generate || exit 1; \
	changed=$$(comm -3 <(echo "$$before") <(snapshot) | awk '{print $$3}' | sort -u); \
	if [ -n "$$changed" ]; then \
		echo "verify: these were not up to date and have been regenerated; look at them and commit them:"; \
		echo "$$changed"; \
		exit 1; \
	fi

##@ Tests

.PHONY: test
test: lint verify ## All that CI does: lint, verify, and every test with the race detector.
	@echo "test: every package, with the race detector and against a control plane"
	@$(with-controlplane) go test -race -timeout 40m ./...

.PHONY: test-unit
test-unit: ## The fast tests: those that need no control plane.
	go test ./api/... ./internal/...

.PHONY: bench
bench: ## Measure writes, reconciles, times and memory beside their goals. Takes ten minutes.
	@$(with-controlplane) go run ./test/bench/cmd/bench

.PHONY: controlplane
controlplane: ## Fetch or build the control plane that tests and demo use; print where it is.
	@go run ./hack/controlplane

##@ Running

.PHONY: build
build: ## Build the manager into bin/.
	go build -trimpath -o bin/manager ./cmd/manager

.PHONY: demo
demo: ## Show the operator at work on this machine. ONCE=1 ends it when everything was shown.
	@$(with-controlplane) go run ./hack/demo $(if $(ONCE),--once)

.PHONY: docker-build
docker-build: ## Build the manager's image, IMAGE=name:tag.
	$(CONTAINER_TOOL) build -t $(IMAGE) .
