# Portico is a workspace of Go modules; every target works from here.
# `make` alone lists them.

MODULES  := $(shell sed -n 's|^[[:space:]]*\(\.[^ ]*\)$$|\1|p' go.work)
PACKAGES := $(addsuffix /...,$(MODULES))
# The all-in-one, and each service as a program of its own.
COMMANDS := ./cmd/portico $(patsubst %/,./%,$(sort $(dir $(wildcard */cmd/*/main.go))))
SUITE    ?= test/conformance/suite
# Without the traces of gRPC, which need templates, the linker can leave out unused methods: a fifth of most services.
FLAGS    := -trimpath -tags=grpcnotrace

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## build and run the all-in-one with the names of Kubernetes, and its data in ./portico-data; VOCABULARY=platform for those of the specification
	CGO_ENABLED=0 go build $(FLAGS) -ldflags="-s -w" -o bin/ ./cmd/portico
	bin/portico $(if $(VOCABULARY),--vocabulary=$(VOCABULARY),$(if $(wildcard portico-data/vocabulary),,--vocabulary=k8s)) $(ARGS)

.PHONY: build
build: ## build static binaries into bin/
	CGO_ENABLED=0 go build $(FLAGS) -ldflags="-s -w" -o bin/ $(COMMANDS)

.PHONY: portico-pki
portico-pki: ## build portico pki with the authorities of others: step-ca, Vault, Google's service
	GOWORK=off CGO_ENABLED=0 go -C cmd/portico-pki build -trimpath -ldflags="-s -w" -o ../../bin/portico-pki .

.PHONY: pki-test
pki-test: ## test portico-pki with step-ca, and its module file
	GOWORK=off go -C cmd/portico-pki mod tidy -diff
	GOWORK=off go -C cmd/portico-pki vet ./...
	GOWORK=off go -C cmd/portico-pki test -count=1 -timeout 5m ./...

.PHONY: images
images: ## build an image of each program, and of etcd and NATS for tests (needs Docker)
	deploy/images/build

.PHONY: reproducible
reproducible: ## build every program twice, in another folder and with an empty cache, and compare
	go test -count=1 -timeout 0 -run TestReproducible ./deploy/images -args -empty-cache -programs=frontdoor,authn,authz,admission,store,watch-hub,csr-signer,token-cleaner,lifecycle,portico,balancer,etcd,nats

.PHONY: compose-up
compose-up: images ## start the suite as containers and print a kubeconfig (needs Docker); ARGS="--scale frontdoor=3"
	deploy/compose/up $(ARGS)

.PHONY: compose-down
compose-down: ## end these containers; ARGS=-v also deletes etcd's data
	deploy/compose/compose down --remove-orphans $(ARGS)

.PHONY: compose-test
compose-test: ## test the containers while they are killed, paused and scaled (needs Docker)
	go test -count=1 -timeout 20m -v ./deploy/compose

.PHONY: helm-test
helm-test: build ## test the Helm chart: rendered, checked, and installed in Portico itself
	GOWORK=off go -C deploy/helm/test test -count=1 -timeout 15m $(ARGS) ./...

.PHONY: helm-cluster-test
helm-cluster-test: build ## bring the pods of the chart to Ready with Kubernetes' controllers, its scheduler and kwok
	GOWORK=off CGO_ENABLED=0 go -C deploy/helm/cluster/kubernetes build -trimpath -tags providerless -o ../../../../bin/cluster/ .
	GOWORK=off CGO_ENABLED=0 go -C deploy/helm/cluster build -trimpath -o ../../../bin/cluster/ sigs.k8s.io/kwok/cmd/kwok
	cp "$$(GOWORK=off go -C deploy/helm/test tool -n helm)" bin/cluster/helm
	GOWORK=off CGO_ENABLED=0 go -C test/kubectl build -trimpath -o ../../bin/kubectl .
	GOWORK=off go -C deploy/helm/cluster test -count=1 -timeout 15m $(ARGS) ./...

.PHONY: console-test
console-test: build ## test the web console in Chromium (Debian's package chromium); ARGS="-args -screenshots $$PWD/docs/console" makes the pictures of docs/console
	GOWORK=off go -C test/console test -count=1 -timeout 10m . $(ARGS)

KUBERNETES := -X k8s.io/component-base/version.gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36

.PHONY: controllers
controllers: build # the controllers and the scheduler of Kubernetes, and kwok
	GOWORK=off CGO_ENABLED=0 go -C test/controllers/kubernetes build -trimpath -ldflags="$(KUBERNETES)" -o ../../../bin/controllers/ .
	GOWORK=off CGO_ENABLED=0 go -C test/controllers build -trimpath -o ../../bin/controllers/ sigs.k8s.io/kwok/cmd/kwok

.PHONY: test-controllers
test-controllers: controllers ## run each kind of workload to its end with the controllers of Kubernetes 1.36, its scheduler, metrics-server and kwok
	GOWORK=off CGO_ENABLED=0 go -C test/controllers build -trimpath -o ../../bin/controllers/ sigs.k8s.io/metrics-server/cmd/metrics-server
	GOWORK=off CGO_ENABLED=0 go -C test/kubectl build -trimpath -o ../../bin/kubectl .
	GOWORK=off go -C test/controllers test -count=1 -timeout 30m $(ARGS) ./...

# What both suites of Kubernetes need to compare their outcomes with the list of those that pass.
RESULTS = $(CURDIR)/bin/controllers/$(1).json
COMPARE = go run ./test/conformance -results $(call RESULTS,$(1)) -passing test/controllers/$(1)/passing.txt $(if $(ONLY),-run '$(ONLY)') $(UPDATE)

.PHONY: test-e2e-kubernetes
test-e2e-kubernetes: controllers ## run the end-to-end suite of Kubernetes without containers; fails when a spec of passing.txt fails; ONLY=expression, UPDATE=-update
	GOWORK=off CGO_ENABLED=0 go -C test/controllers/kubernetes build -trimpath -ldflags="$(KUBERNETES)" -o ../../../bin/controllers/ k8s.io/kubernetes/cmd/kubectl github.com/onsi/ginkgo/v2/ginkgo
	GOWORK=off CGO_ENABLED=0 go -C test/controllers/kubernetes test -c -vet=off -trimpath -ldflags="$(KUBERNETES)" -o ../../../bin/controllers/e2e.test k8s.io/kubernetes/test/e2e
	GOWORK=off go -C test/controllers test -count=1 -timeout 0 -v -run TestE2E . -args -results '$(call RESULTS,e2e)' -only '$(ONLY)' $(ARGS)
	$(call COMPARE,e2e)

.PHONY: test-kubectl-kubernetes
test-kubectl-kubernetes: controllers ## run the tests of kubectl of Kubernetes; fails when a function of passing.txt fails; ONLY="wait scale", UPDATE=-update
	GOWORK=off CGO_ENABLED=0 go -C test/controllers/kubernetes build -trimpath -ldflags="$(KUBERNETES)" -o ../../../bin/controllers/ k8s.io/kubernetes/cmd/kubectl k8s.io/kubernetes/cmd/kubectl-convert
	GOWORK=off go -C test/controllers test -count=1 -timeout 0 -v -run TestKubectl . -args -results '$(call RESULTS,kubectl)' -only '$(ONLY)' $(ARGS)
	$(call COMPARE,kubectl)

.PHONY: test-thirdparty
test-thirdparty: build ## run the suites of controller-runtime and gateway-api with portico in the place of envtest's programs; fails when a check of passing.txt fails; ONLY=text, UPDATE=-update
	bin/portico envtest bin/thirdparty
	GOWORK=off CGO_ENABLED=0 go -C test/thirdparty test -count=1 -timeout 30m -v . -args -assets '$(CURDIR)/bin/thirdparty' -results '$(CURDIR)/bin/thirdparty/results.json' -only '$(ONLY)'
	go run ./test/conformance -results bin/thirdparty/results.json -passing test/thirdparty/passing.txt $(if $(ONLY),-run '$(ONLY)') $(UPDATE)

.PHONY: monitoring-test
monitoring-test: ## parse the alerts and the dashboard, and compare them with the metrics of the suite
	GOWORK=off go -C deploy/monitoring/test test -count=1 ./...

# Many packages wait more than they compute. The race detector waits a second before each program ends, by default.
TOGETHER ?= $(shell expr 2 + $$(getconf _NPROCESSORS_ONLN))
GORACE   ?= atexit_sleep_ms=20

# A failed test is run once more with RERUNS=1, except after a data race, a panic or more
# than five failures. It is still a defect: .ci/run names it.
RERUNS    ?= 0
GOTESTSUM  = bin/tools/gotestsum --format standard-quiet --rerun-fails=$(RERUNS) --rerun-fails-max-failures=5 --rerun-fails-run-root-test \
	--rerun-fails-abort-on-data-race $(if $(EVENTS),--jsonfile $(EVENTS)/$(1).json) --packages "$(2)" -- -vet=off -p $(TOGETHER) -timeout 20m $(TESTFLAGS)

# The race detector sees nothing where neither the code nor the tests start goroutines. These
# packages are tested without it, and as check and build compile them.
GOROUTINES := ^[[:space:]]*(defer )?go (func|[a-z])|\.(Run)?Parallel\(|\.Go\(|httptest|"net"|grpc"
SEQUENTIAL  = $(shell for d in $$(git ls-files frontdoor/internal/typesystem frontdoor/internal/wire services | grep _test.go | grep -v ^services/kit/ | xargs -n1 dirname | sort -u); do \
	grep -qE '$(GOROUTINES)' $$d/*.go || echo github.com/portico-platform/portico/$$d; done)
CONCURRENT  = ./test/e2e $(filter-out %/tools/lint %/test/e2e $(SEQUENTIAL),$(shell go list $(PACKAGES))) # the longest first

.PHONY: test
test: tools ## run all tests of all modules, without what check runs: tools/lint, go vet
	@status=0; \
	GORACE=$(GORACE) $(call GOTESTSUM,race,$(CONCURRENT)) -race || status=1; \
	CGO_ENABLED=0 GOFLAGS="$(FLAGS)" $(call GOTESTSUM,sequential,$(SEQUENTIAL)) || status=1; \
	exit $$status

# The build flags of the programs, so that everything is compiled once without the race detector.
PLAIN := check monitoring-test release-test console-test helm-test pki-test conformance
$(PLAIN): export CGO_ENABLED = 0
$(PLAIN): export GOFLAGS = $(FLAGS)
.PHONY: check
check: tools ## check format, vet, staticcheck, spelling, the rules of tools/lint and the module files
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not formatted (advice: run make fix):"; echo "$$unformatted"; exit 1; }
	go vet $(PACKAGES)
	GOWORK=off go -C test/conformance/suite vet ./...
	bin/tools/staticcheck $(PACKAGES)
	git ls-files -- '*.go' '*.md' '*.sh' | grep -v /testdata/ | xargs bin/tools/misspell -error -i ect
	go test -count=1 ./tools/lint
	@for m in $(MODULES); do GOWORK=off go -C $$m mod tidy -diff || { echo "$$m/go.mod is not tidy (advice: run make tidy)"; exit 1; }; done

.PHONY: tools
tools: # what check runs, in the versions of tools/programs/go.mod
	@GOWORK=off go -C tools/programs build -o ../../bin/tools/ tool

.PHONY: fix
fix: ## format everything
	gofmt -w .

.PHONY: tidy
tidy: ## bring all modules to one set of versions
	for m in $(MODULES); do GOWORK=off go -C $$m mod tidy || exit 1; done
	go work sync
	for m in $(MODULES); do GOWORK=off go -C $$m mod tidy || exit 1; done

.PHONY: gen
gen: ## regenerate generated code
	GOWORK=off go -C tools/release run . 1.36.yaml ../../frontdoor/internal/typesystem
	go generate $(PACKAGES)

.PHONY: release-test
release-test: ## compare the data of later Kubernetes releases with what their Go types say
	GOWORK=off go -C tools/release test -count=1 ./...

.PHONY: e2e
e2e: ## run the end-to-end tests, on one process and on many
	go test -count=1 ./cmd/portico ./test/e2e/...

ATTACK_ARGS ?= -duration 10m

.PHONY: rolling
rolling: ## roll, scale, kill and cut off each service under the load of 200 writers and 1,000 informers
	go test -count=1 -timeout 0 -v -run 'TestRolling$$' ./test/e2e -args -rolling

.PHONY: skew-test
skew-test: ## run the services of an earlier commit among the present ones; FROM=commit, by default the release before or HEAD~1
	go test -count=1 -timeout 0 -v -run 'TestSkew$$' ./test/e2e -args -skew -skew-from '$(FROM)'

ROUNDS ?= 10

.PHONY: bounds
bounds: ## measure what lost hubs and crashed front doors cost, in ROUNDS; fails when a 90th percentile is above its bound
	go test -count=1 -timeout 0 -v -run 'TestLostHub|TestCrashedClaim' ./test/e2e -args -bounds $(ROUNDS)

.PHONY: attack
attack: ## attack the suite: the trials in their large form, again and again, and a report
	go test -count=1 -timeout 0 -v -run 'TestAttack|TestLinearizable' ./test/e2e -args -slowest 1s $(ATTACK_ARGS)

.PHONY: soak
soak: ## make each kind of change SOAK_ROUNDS times, 1,000 by default, and compare what the process holds
	go test -count=1 -timeout 0 -v -run TestSoak ./test/e2e -args -rounds $(or $(SOAK_ROUNDS),1000)

FUZZTIME ?= 10m

.PHONY: fuzz
# Go shortens each new input for a minute by default, in which it tries no others: where that
# does not succeed, a target barely runs.
fuzz: ## fuzz every target for FUZZTIME, one after the other
	@for p in $$(go list -f '{{.ImportPath}}' $(PACKAGES)); do \
		for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
			echo "$$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 200x $$p || exit 1; \
		done; \
	done

.PHONY: conformance
conformance: build ## run the conformance suite; fails when a check of passing.txt fails
	go run ./test/conformance -suite $(SUITE) -portico bin/portico

.PHONY: conformance-update
conformance-update: build ## the same, and add newly passing checks to passing.txt
	go run ./test/conformance -suite $(SUITE) -portico bin/portico -update

.PHONY: bench
bench: build ## measure Portico
	go run ./test/bench -portico bin/portico $(ARGS)

.PHONY: bench-processes
bench-processes: build ## measure the services as separate processes beside the all-in-one, as ratios
	CGO_ENABLED=0 go build -trimpath -o bin/ ./test/e2e/cmd/etcd ./test/e2e/cmd/nats
	go run ./test/bench -portico bin/portico -processes bin $(ARGS)

PEER ?= bin/peer

.PHONY: bench-peer
bench-peer: build ## measure Portico beside the reference server, as ratios
	GOWORK=off CGO_ENABLED=0 go -C test/bench/peer build -trimpath -o ../../../bin/peer/ ./...
	go run ./test/bench -portico bin/portico -peer bin/peer $(ARGS)

.PHONY: bench-envtest
bench-envtest: build ## measure control planes inside tests: in process, in the place of envtest's programs, and those of Kubernetes; PEER=dir has these
	$(if $(filter bin/peer,$(PEER)),GOWORK=off CGO_ENABLED=0 go -C test/bench/peer build -trimpath -o ../../../bin/peer/ ./...)
	go run ./test/bench/envtest -portico bin/portico -peer $(PEER) $(ARGS)

.PHONY: bench-floor
bench-floor: build ## measure lists beside a plain TLS server that sends the same bytes from memory
	go run ./test/bench -portico bin/portico -only '^list as JSON, repeated' $(ARGS)

.PHONY: bench-size
bench-size: build ## measure Portico with 100,000 pods beside 10,000; TMPDIR needs 3 GB
	go run ./test/bench -portico bin/portico -pods 100000 -beside 10000 -settle 30s -rounds 1 $(ARGS)

.PHONY: scale-costs
scale-costs: build ## measure what the services cost, for the model of docs/scaling.md
	CGO_ENABLED=0 go build -trimpath -o bin/ ./test/e2e/cmd/etcd ./test/e2e/cmd/nats
	go run ./test/bench/scale -measure test/bench/scale/costs.json $(ARGS)

.PHONY: scale-check
scale-check: build ## measure one, two and three front doors beside the model
	CGO_ENABLED=0 go build -trimpath -o bin/ ./test/e2e/cmd/etcd ./test/e2e/cmd/nats
	go run ./test/bench/scale -check 1,2,3 $(ARGS)

BEFORE ?= HEAD~1
AFTER  ?= HEAD
.PHONY: bench-check
bench-check: ## compare the commits BEFORE and AFTER, in pairs; fails when AFTER needs more CPU beyond noise
	rm -rf bin/check
	for side in before:$(BEFORE) after:$(AFTER); do \
		mkdir -p bin/check/$${side%%:*} && git archive $${side#*:} | tar -x -C bin/check/$${side%%:*} && \
		(cd bin/check/$${side%%:*} && CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o ../portico-$${side%%:*} ./$$(ls -d cmd/portico deploy/portico 2>/dev/null | head -1)) || exit 1; \
		rm -rf bin/check/$${side%%:*}; \
	done
	go run ./test/bench -portico bin/check/portico-after -before bin/check/portico-before -rounds 12 -pods 2000 -creates 500 -duration 1s -settle 5s -watchers 300 \
		-only 'list as JSON, repeated|list as Protobuf, first|get a pod|changes to watchers|without clients|(create|PUT) (config maps|pods), 16 clients$$' $(ARGS)

.PHONY: compare
compare: build ## compare the answers of Portico with those of the reference server: the corpus, then random schemas for SCHEMAS, 20m by default; with ARGS only what they say
	GOWORK=off CGO_ENABLED=0 go -C test/bench/peer build -trimpath -o ../../../bin/peer/ ./...
	go run ./test/compare -portico bin/portico -peer bin/peer $(ARGS)
	$(if $(ARGS),,go run ./test/compare -portico bin/portico -peer bin/peer -strict -schemas $(or $(SCHEMAS),20m))
