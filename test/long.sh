#!/bin/sh
# Runs what takes too long for every change: the fuzzers, a minute each, the
# whole crash campaign and the benchmarks.
set -eu
cd "$(dirname "$0")/.."
for target in protocol:FuzzParseFrame internal/catalog/contract/all:FuzzRead protocol:FuzzFast internal/service/egress:FuzzParseURL internal/service/egress:FuzzParseHost internal/core/policy:FuzzPolicies cmd/pcapsum:FuzzCapture; do
	echo "== fuzzing ${target#*:} in ${target%%:*}"
	go test "./${target%%:*}" -run '^$' -fuzz "^${target#*:}\$" -fuzztime "${FUZZTIME:-60s}"
done
echo "== the race detector over what make test runs without it"
go test -race -count=1 -timeout 1h -run Restores ./internal/app
go test -race -count=1 -timeout 1h ./internal/surface/cli ./internal/surface/check ./internal/catalog/scaffold ./plugins ./cmd/pcapsum ./test/compat/... ./test/crash ./test/escape
echo "== the race detector over the C in Go too, with every repetition; make test leaves out both"
go test -race -count=1 -timeout 1h ./internal/store/... ./internal/core/ledger ./internal/agent/schedule ./internal/store/job ./internal/runtime/script ./internal/core/kernel ./internal/runtime/process ./internal/base/budget ./internal/core/policy ./internal/agent/schedule ./internal/store/backup ./internal/core/approval ./internal/catalog/registry/...
echo "== callers are not crossed, ten times"
go test -race -count=10 -run TestCallersAreNotCrossed ./internal/runtime/process
echo "== 2,000 kills of a host in the middle of calls with effects, on both stores"
MORTISE_CRASH_ROUNDS="${CRASHROUNDS:-1300}" go test -count=1 -timeout 3h -v -run 'Repeated|Finds|Disk' ./test/crash
echo "== 2,000 rounds on each store that refuses for 1, 5 and 20 s, is slow, has pools of one, and of hosts that are paused or closed"
MORTISE_CRASH_ROUNDS="${TROUBLEROUNDS:-2000}" go test -count=1 -timeout 5h -v -run 'RefusesForAWhile|PoolsOfOne|SlowCommits|PausedPast|ThatCloses' ./test/crash
echo "== 1,000 cases of hostile plugins, and 200 kills of a host with their trees running"
MORTISE_HOSTILE_FLOODS=all MORTISE_HOSTILE_CASES="${HOSTILECASES:-1000}" MORTISE_HOSTILE_KILLS="${HOSTILEKILLS:-200}" go test -count=1 -timeout 2h -v ./test/hostile
echo "== 200 readers of events that stay, 200 that come and go and 200 that stall, for a minute"
MORTISE_READERS_TIME="${READERSTIME:-60s}" go test -count=1 -timeout 30m -v -run TestReadersOfEvents ./internal/surface/rest
echo "== hosts that serve: keys, kills, reloads and nodes, on both stores"
go test -count=1 -timeout 1h -v ./test/serve
echo "== all stories of the command line over the socket and at a URL"
go test -count=1 -timeout 1h -run 'TestStories' ./internal/surface/cli
echo "== 10,000 requests of 50 tenants with the same names, on both stores"
MORTISE_TENANTS="${TENANTS:-50}" MORTISE_TENANT_CALLS="${TENANTCALLS:-10000}" go test -count=1 -timeout 1h -v -run TestNothingCrossesTenants ./internal/surface/rest
echo "== ten million values and schemas, told by programs and by the library"
MORTISE_SCHEMA_PAIRS="${SCHEMAPAIRS:-10000000}" go test -count=1 -timeout 1h -v -run TestAProgramLetsNothingPass ./internal/core/schema
echo "== captures of 100 MB, beside tshark"
MORTISE_PCAP_MB="${PCAPMB:-100}" go test -count=1 -timeout 30m -v -run 'Tshark|Bounds' ./cmd/pcapsum
echo "== 200 cron expressions in 30 time zones, beside a person who watches the clock"
MORTISE_CRON_ZONES=30 MORTISE_CRON_SPECS="${CRONSPECS:-200}" MORTISE_CRON_MONTHS="${CRONMONTHS:-37}" go test -count=1 -timeout 1h -run Watches ./internal/agent/schedule
echo "== 100 plugins whose authors knew the contracts alone"
go test -count=1 -timeout 1h -v ./test/compat/authors
echo "== an outreach from a document to its second mail, its host killed at ten points"
MORTISE_STORY_POINTS=all MORTISE_GMAIL_CLIENT=1 go test -count=1 -timeout 1h -v -run 'TestOutreachStory|TestTheReceiverSpeaks' ./plugins
echo "== the tools of investigations over files of 1 GiB, each in its cage with 256 MiB of memory, beside second implementations"
python3 -B test/volume/volume.py bin/mortise "${TOOLMB:-1024}"
echo "== the official conformance suite of the Model Context Protocol, five times"
(cd test/conformance && { [ -d node_modules ] || npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; })
go test -count="${CONFORMANCEROUNDS:-5}" -timeout 1h -v ./test/conformance
echo "== releases for all systems, made in two directories"
go test -count=1 -timeout 2h -v ./cmd/dist
cd bench && go run .
