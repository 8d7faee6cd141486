#!/bin/sh
# Runs what takes too long for every change: the fuzzers, a minute each, and
# the benchmarks.
set -eu
cd "$(dirname "$0")/.."
for target in protocol:FuzzParseFrame internal/registry/dialect:FuzzRead protocol:FuzzFast internal/egress:FuzzParseURL internal/egress:FuzzParseHost internal/policy:FuzzPolicies; do
	echo "== fuzzing ${target#*:} in ${target%%:*}"
	go test "./${target%%:*}" -run '^$' -fuzz "^${target#*:}\$" -fuzztime "${FUZZTIME:-60s}"
done
echo "== callers are not crossed, ten times"
go test -race -count=10 -run TestCallersAreNotCrossed ./internal/process
cd bench && go run .
