package main

// Lanes of the set test. Commands of Go share a lane: two of them that run in
// parallel on an empty cache would compile the same packages twice.
const (
	goLane = iota
	scriptLane
	browserLane
)

// testParts are those of `make test`: what every change has to pass.
func testParts() []part {
	return []part{
		{name: "gofmt", about: "every Go file is formatted", run: checkFormat},
		{name: "build", about: "build bin/mortise with the programs that it carries", run: build},
		{name: "inputs", about: "build the programs that tests start", after: "build", run: buildInputs},
		{name: "vet", about: "go vet of every package", after: "build", run: vet},
		{name: "go", about: "Go tests, contract suites, transcripts, stories and docs", after: "inputs", needs: []string{"postgres"}, run: testGo},
		{name: "python", about: "Python SDK, client, adapters and shipped tools", lane: scriptLane, after: "inputs",
			needs: []string{"python3"}, content: []string{"sdk", "plugins", "protocol"}, run: testPython},
		{name: "plugins", about: "the shipped plugins pass mortise check", lane: scriptLane, after: "inputs",
			content: []string{"plugins", "sdk"}, run: checkPlugins},
		{name: "bench-compiles", about: "the benchmarks compile", lane: scriptLane, after: "vet", run: vetBench}, // what it shares with the tests is compiled by then
		{name: "typescript", about: "TypeScript SDK", lane: browserLane,
			needs: []string{"npm:sdk/typescript"}, content: []string{"sdk", "protocol"}, run: testTypeScript},
		{name: "console", about: "types, unit tests and build of the console", lane: browserLane,
			needs: []string{"npm:console"}, content: []string{"console", "docs", "internal/surface/console", "internal/base/consent"}, run: testConsole},
		{name: "typescript-client", about: "TypeScript client and its adapters", lane: browserLane, after: "inputs",
			needs: []string{"npm:sdk/typescript/client"}, content: []string{"sdk"}, run: testTypeScriptClient},
		{name: "browser", about: "one approval in a real browser", lane: browserLane, after: "inputs",
			needs: []string{"npm:console", "chromium"}, content: []string{"console"}, run: smokeBrowser},
	}
}
