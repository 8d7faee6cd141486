package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// racePackages own concurrency: they start goroutines or share memory.
var racePackages = []string{
	"./internal/core/kernel", "./internal/core/ledger", "./internal/runtime/process", "./internal/base/event",
	"./internal/store/...", "./internal/host/...",
}

// watchedC are the packages that were translated from C. The race detector slows
// them down five to ten times, and their computations are not ours.
var unwatchedC = []string{
	"-gcflags=modernc.org/sqlite/lib=-race=false", "-gcflags=modernc.org/libc/...=-race=false",
	"-gcflags=modernc.org/libquickjs/...=-race=false",
}

// raceParts are those of `make test-race`.
func raceParts() []part {
	return []part{
		{name: "build", about: "build bin/mortise with the programs that it carries", run: build},
		{name: "inputs", about: "build the programs that tests start", after: "build", run: buildInputs},
		{name: "race", about: "tests of the packages that own concurrency, with the race detector", after: "inputs",
			needs: []string{"cc", "postgres"}, run: goPart(goTest{packages: racePackages, flags: append([]string{"-race", "-short"}, unwatchedC...), env: cgo})},
	}
}

var cgo = []string{"CGO_ENABLED=1"}

// goPart returns the run of a part that is one `go test`.
func goPart(t goTest) func(*job) error {
	return func(j *job) error { return j.goTest(t) }
}

// onDisk makes tests keep their files on the disk, as ordinary users have them.
var onDisk = []string{"TMPDIR=", "GOTMPDIR="}

// set returns a variable with the value that the user gave it, or else value.
func set(name, value string) string {
	return name + "=" + cmp.Or(os.Getenv(name), value)
}

// longParts are those of `make test-long`: campaigns, measurements and everything
// that `make test` leaves out. They run one after the other, because many measure.
func longParts() []part {
	parts := []part{
		{name: "build", about: "build bin/mortise with the programs that it carries", run: build},
		{name: "inputs", about: "build the programs that tests start", after: "build", run: buildInputs},
		{name: "full", about: "Go tests without -short: all repetitions, all measurements, all ways to reach a host",
			needs: []string{"postgres", "tshark", "minisign"}, run: func(j *job) error {
				packages, err := j.listPackages("./...")
				if err != nil {
					return err
				}
				return j.goTest(goTest{packages: packages, flags: []string{"-p=1"}})
			}},
		{name: "race", about: "Go tests with the race detector, every package", needs: []string{"cc", "postgres"}, run: func(j *job) error {
			packages, err := j.listPackages("./...")
			if err != nil {
				return err
			}
			return j.goTest(goTest{packages: packages, flags: append([]string{"-race", "-short", "-p=2"}, unwatchedC...), env: cgo})
		}},
		{name: "race-c", about: "the race detector over the C in Go as well", needs: []string{"cc", "postgres"}, run: goPart(goTest{
			packages: []string{"./internal/store/...", "./internal/core/ledger", "./internal/core/kernel", "./internal/runtime/script", "./internal/runtime/process"},
			flags:    []string{"-race", "-p=1"}, env: cgo})},
		{name: "crossing", about: "callers of a shared process are not crossed, ten times with the race detector", needs: []string{"cc"}, run: goPart(goTest{
			packages: []string{"./internal/runtime/process"}, flags: []string{"-race", "-count=10", "-run=TestCallersAreNotCrossed"}, env: cgo})},
		{name: "crash", about: "2,000 kills of a host in the middle of calls with effects, on both stores", needs: []string{"postgres"}, run: goPart(goTest{
			packages: []string{"./test/crash"}, flags: []string{"-count=1", "-timeout=3h", "-run=Repeated|Finds|Disk"},
			env: append(onDisk, set("MORTISE_CRASH_ROUNDS", "1300"))})},
		{name: "outage", about: "2,000 rounds on each store that refuses, is slow, or belongs to paused hosts", needs: []string{"postgres"}, run: goPart(goTest{
			packages: []string{"./test/crash"}, flags: []string{"-count=1", "-timeout=5h", "-run=RefusesForAWhile|PoolsOfOne|SlowCommits|PausedPast|ThatCloses"},
			env: append(onDisk, set("MORTISE_CRASH_ROUNDS", "2000"))})},
		{name: "hostile", about: "1,000 cases of hostile plugins, and 200 kills of a host with their processes running", run: goPart(goTest{
			packages: []string{"./test/hostile"}, flags: []string{"-count=1", "-timeout=2h"},
			env: append(onDisk, set("MORTISE_HOSTILE_FLOODS", "all"), set("MORTISE_HOSTILE_CASES", "1000"), set("MORTISE_HOSTILE_KILLS", "200"))})},
		{name: "escape", about: "probes that try to leave the sandbox", run: goPart(goTest{packages: []string{"./test/escape"}, env: onDisk})},
		{name: "serve", about: "hosts that serve: keys, kills, reloads and nodes, on both stores", needs: []string{"postgres"}, run: goPart(goTest{
			packages: []string{"./test/serve"}, flags: []string{"-count=1", "-timeout=1h"}})},
		{name: "readers", about: "600 readers of events for a minute", run: goPart(goTest{
			packages: []string{"./internal/surface/rest"}, flags: []string{"-count=1", "-run=TestReadersOfEvents"}, env: []string{set("MORTISE_READERS_TIME", "60s")}})},
		{name: "tenants", about: "10,000 requests of 50 tenants with equal names, on both stores", needs: []string{"postgres"}, run: goPart(goTest{
			packages: []string{"./internal/surface/rest"}, flags: []string{"-count=1", "-run=TestNothingCrossesTenants"},
			env: []string{set("MORTISE_TENANTS", "50"), set("MORTISE_TENANT_CALLS", "10000")}})},
		{name: "schema", about: "ten million values and schemas, beside the reference library", run: goPart(goTest{
			packages: []string{"./internal/core/schema"}, flags: []string{"-count=1", "-run=TestAProgramLetsNothingPass"},
			env: []string{set("MORTISE_SCHEMA_PAIRS", "10000000")}})},
		{name: "captures", about: "captures of 100 MB, beside tshark", needs: []string{"tshark"}, run: goPart(goTest{
			packages: []string{"./cmd/pcapsum"}, flags: []string{"-count=1", "-run=Tshark|Bounds"}, env: []string{set("MORTISE_PCAP_MB", "100")}})},
		{name: "cron", about: "200 cron expressions in 30 time zones, beside a walk of every minute", run: goPart(goTest{
			packages: []string{"./internal/agent/schedule"}, flags: []string{"-count=1", "-run=Watches"},
			env: []string{"MORTISE_CRON_ZONES=30", set("MORTISE_CRON_SPECS", "200"), set("MORTISE_CRON_MONTHS", "37")}})},
		{name: "authors", about: "100 plugins whose authors knew only the contracts", run: goPart(goTest{
			packages: []string{"./test/compat/authors"}, flags: []string{"-count=1"}})},
		{name: "outreach", about: "an outreach from a document to its second mail, its host killed at ten points", needs: []string{"npm"}, run: goPart(goTest{
			packages: []string{"./plugins"}, flags: []string{"-count=1", "-run=TestOutreachStory|TestTheReceiverSpeaks"},
			env: []string{"MORTISE_STORY_POINTS=all", "MORTISE_GMAIL_CLIENT=1"}})},
		{name: "ordinary", about: "stories and the blocks of the documentation as a user without privileges", after: "inputs", run: testOrdinary},
		{name: "volume", about: "the tools of investigations over files of 1 GiB, beside second implementations", needs: []string{"python3", "tshark"}, run: func(j *job) error {
			return j.command(".", onDisk, "python3", "-B", "test/volume/volume.py", "bin/mortise", cmp.Or(os.Getenv("MORTISE_VOLUME_MB"), "1024"))
		}},
		{name: "conformance", about: "the official conformance suite of the Model Context Protocol", needs: []string{"npm:test/conformance"}, run: goPart(goTest{
			packages: []string{"./test/conformance"}, flags: []string{"-count=1"}, env: onDisk})},
		{name: "clients", about: "clients that are generated from the document of the API", run: goPart(goTest{dir: "test/clients", packages: []string{"."}})},
		{name: "sign-in", about: "a sign-in with a browser", needs: []string{"chromium"}, run: goPart(goTest{dir: "test/browser", packages: []string{"."}, flags: []string{"-count=1"}})},
		{name: "browser", about: "every page of the console in a browser", needs: []string{"npm:console", "chromium"}, run: func(j *job) error {
			return j.command("console", nil, "npm", "run", "--silent", "browser")
		}},
		{name: "releases", about: "releases for all systems, made in two directories", run: goPart(goTest{
			packages: []string{"./cmd/dist"}, flags: []string{"-count=1", "-timeout=2h"}})},
		{name: "structure", about: "generated files are what they are generated from", run: func(j *job) error { return j.command(".", nil, "make", "verify") }},
		{name: "bench-check", about: "allocations and ratios of benchmarks, beside test/speed/baseline.txt", run: func(j *job) error {
			return j.command(".", nil, "go", "run", "./test/speed")
		}},
		{name: "bench", about: "the benchmarks beside their peers", run: func(j *job) error { return j.command("bench", nil, "go", "run", ".") }},
	}
	return append(parts, fuzzParts()...)
}

// testOrdinary runs stories and the documentation with test/ordinary/as. A user
// without privileges gets the same from the part full.
func testOrdinary(j *job) error {
	if os.Getuid() != 0 {
		return fmt.Errorf("every part runs as a user without privileges; this one is for root: %w", errNotRun)
	}
	as := filepath.Join(j.env.root, "bin", "test", "as")
	if err := j.command(".", nil, "go", "build", "-o", as, "./test/ordinary/as"); err != nil {
		return err
	}
	return j.goTest(goTest{
		packages: []string{"./internal/surface/cli", "./docs"},
		flags:    []string{"-count=1", "-p=1", "-short", "-exec=" + as, "-run=^(TestStories|TestBlocks)$"}})
}

// fuzzTargets are packages and their fuzz targets.
var fuzzTargets = [][2]string{
	{"protocol", "FuzzParseFrame"}, {"protocol", "FuzzFast"}, {"internal/catalog/contract/all", "FuzzRead"},
	{"internal/service/egress", "FuzzParseURL"}, {"internal/service/egress", "FuzzParseHost"},
	{"internal/core/policy", "FuzzPolicies"}, {"cmd/pcapsum", "FuzzCapture"},
}

// fuzzParts runs each fuzz target for a minute, or for FUZZTIME.
func fuzzParts() []part {
	var parts []part
	for _, target := range fuzzTargets {
		pkg, name := target[0], target[1]
		parts = append(parts, part{
			name: "fuzz-" + strings.ToLower(strings.TrimPrefix(name, "Fuzz")), about: "fuzz " + name + " in " + pkg,
			run: func(j *job) error {
				return j.command(".", nil, "go", "test", "./"+pkg, "-run=^$", "-fuzz=^"+name+"$", "-fuzztime="+cmp.Or(os.Getenv("FUZZTIME"), "60s"))
			},
		})
	}
	return parts
}
