package hostile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// The codes that most calls end with. None is success.
const (
	none      = plugin.Code("")
	malformed = plugin.CodeMalformedResponse
	crashed   = plugin.CodeCrashed
	timeout   = plugin.CodeTimeout
	handshake = plugin.CodeHandshakeFailed
	exceeded  = plugin.CodeLimitExceeded
	failed    = plugin.CodePluginError
)

// A row is one behaviour of one program with its parameters, each of which
// makes a case.
type row struct {
	program string // go, python, node, shell; v1 is the Go program by protocol 1
	name    string
	params  []string
	want    []plugin.Code // any of these

	ms        int           // the time of each call; 8000 where it is 0
	operation string        // run where it is empty
	watch     string        // how its events are received: not at all, quickly or slowly
	input     int           // bytes of the input
	then      []plugin.Code // of a second call in the same session; nil for no such call
	caged     bool          // only a full cage stops it
}

// all is any of many.
func all(codes ...plugin.Code) []plugin.Code { return codes }

// ns are numbers as parameters.
func ns(numbers ...int) (params []string) {
	for _, n := range numbers {
		params = append(params, strconv.Itoa(n))
	}
	return params
}

// upTo are the parameters 0 to n-1.
func upTo(n int) (params []string) {
	for i := range n {
		params = append(params, strconv.Itoa(i))
	}
	return params
}

// with is a parameter with each of several others behind it.
func with(params []string, others ...string) (both []string) {
	for _, p := range params {
		for _, o := range others {
			both = append(both, p+"|"+o)
		}
	}
	return both
}

// flooded are the service methods that take a value of any size, and others that
// do not and are asked all the same.
var flooded = []string{"cache.set", "storage.put", "storage.get", "cursor.set", "cursor.get", "kb.ingest_text", "kb.upsert_knowledge_object", "kb.search_chunks", "kb.find_documents",
	"secrets.set", "audit.log", "scheduler.enqueue", "llm.query_text", "http.fetch", "artifacts.register", "session.open", "operations.call", "reference_data.get", "rate_limit.take",
	"query.list", "ocr.extract_text", "identity.lookup", "auth.resolve"}

// floods are the parameters of a flood of each, with so many requests of so many
// bytes.
func floods(bytes, count int) (params []string) {
	for _, method := range flooded {
		params = append(params, fmt.Sprintf("%s|%d|%d", method, bytes, count))
	}
	return params
}

// frameKinds are the kinds of wrong lines, each with its parameters. A line of
// any of them ends the session, wherever it stands.
var frameKinds = []struct {
	name   string
	params []string
}{
	{"text", ns(1, 2, 100, 10_000, 1_000_000)}, {"blank", upTo(6)}, {"bare value", upTo(8)}, {"array", upTo(5)}, {"byte order", upTo(5)}, {"nul", upTo(4)},
	{"control", upTo(5)}, {"bad utf-8", upTo(15)}, {"bad utf-8 name", upTo(15)}, {"surrogate", upTo(6)}, {"escape", upTo(5)}, {"twice", upTo(7)},
	{"deep array", ns(65, 100, 1000, 100_000, 1_000_000)}, {"deep object", ns(65, 1000, 100_000)}, {"never closed", ns(1, 64, 100_000)},
	{"only closing", ns(1, 10_000)}, {"number", upTo(10)}, {"id", upTo(17)}, {"no id", upTo(4)}, {"version", upTo(6)}, {"no version", upTo(3)},
	{"member", upTo(5)}, {"case", upTo(3)}, {"both", upTo(3)}, {"neither", upTo(2)}, {"error", upTo(8)}, {"cut", ns(1, 2, 10, 20, 30, 38)},
	{"cut at the end", ns(0, 1000, 1_000_000)}, {"more", upTo(8)}, {"almost json", upTo(11)}, {"other format", upTo(12)}, {"compressed", ns(100, 1_000_000)},
	{"noise", upTo(10)}, {"over the limit", ns(0, 1, 1<<20, 12<<20)}, {"emit", upTo(5)}, {"log", upTo(5)},
}

// rows returns the whole table.
func rows() []row {
	var table []row
	add := func(program string, more ...row) {
		for _, r := range more {
			r.program = program
			if r.params == nil {
				r.params = []string{""}
			}
			table = append(table, r)
		}
	}
	for _, program := range []string{"go", "python", "node", "shell"} {
		add(program, row{name: "good", want: all(none), then: all(none)}) // to compare with
	}
	for _, k := range frameKinds {
		params := with(k.params, "answer")
		for i, place := range []string{"opening", "later", "progress", "events", "service", "in pieces", "early"} {
			for j := range 2 { // a few of its parameters at each other place
				params = append(params, k.params[(i+j*3)%len(k.params)]+"|"+place)
			}
		}
		slices.Sort(params)
		add("go", row{name: "frame/" + k.name, params: slices.Compact(params), want: all(malformed)})
	}
	add("go",
		row{name: "opens/error", want: all(handshake)},
		row{name: "opens/other version", params: upTo(6), want: all(plugin.CodeProtocolVersionMismatch)},
		row{name: "opens/other plugin", params: upTo(5), want: all(handshake)},
		row{name: "opens/other release", params: upTo(5), want: all(handshake)},
		row{name: "opens/no plugins", params: upTo(3), want: all(handshake)},
		row{name: "opens/concurrency", params: upTo(6), want: all(handshake)},
		row{name: "opens/shape", params: upTo(6), want: all(handshake)},
		row{name: "opens/many plugins", params: ns(1, 1000, 50_000), want: all(none)},
		row{name: "opens/unknown features", want: all(none)},
		row{name: "opens/late", params: ns(0, 50, 300), want: all(none), then: all(none)},
		row{name: "opens/never", want: all(timeout), ms: 600},
		row{name: "opens/busy", want: all(timeout), ms: 600},
		row{name: "opens/exits", params: ns(0, 1, 127, 255), want: all(crashed)},
		row{name: "opens/twice", params: ns(100, 200), want: all(none, malformed)},
		row{name: "opens/in drops", params: ns(0, 1), want: all(none)},
		row{name: "opens/half", params: ns(0, 1, 50), want: all(timeout), ms: 600},
		row{name: "opens/half and exits", params: ns(1, 10, 50), want: all(malformed)},
		row{name: "opens/stdout closed", want: all(crashed)},
		row{name: "opens/talks first", params: ns(1, 100, 10_000), want: all(none)},
		row{name: "opens/asks first", want: all(none)},
		row{name: "opens/and exits", params: ns(0, 10), want: all(crashed, plugin.CodeUnavailable), ms: 4000},
		row{name: "opens/and never reads", want: all(timeout), ms: 600, input: 3 << 20},
		row{name: "opens/and closes stdin", want: all(timeout), ms: 600},
		row{name: "opens/floods", params: ns(5, 64), want: all(malformed)},
	)
	add("go",
		row{name: "exits", params: ns(0, 1, 2, 9, 126, 127, 128, 137, 143, 255), want: all(crashed)},
		row{name: "exits later", params: ns(1, 50, 200), want: all(crashed)},
		row{name: "exits mid-line", params: ns(1, 2, 16, 30, 60), want: all(malformed)},
		row{name: "answers, exits", params: ns(0, 1, 255), want: all(none), then: all(none)},
		row{name: "progress, exits", params: ns(1, 1000), want: all(crashed), watch: "quick"},
		row{name: "panics", params: ns(0, 1000, 100_000), want: all(crashed)},
		row{name: "is killed", want: all(crashed)},
		row{name: "recursion", want: all(crashed)},
		row{name: "deadlock", want: all(timeout, crashed), ms: 600},
		row{name: "closes stdout", params: ns(0, 50), want: all(crashed)},
		row{name: "closes stdin", params: ns(0, 50), want: all(none)},
		row{name: "closes stderr", want: all(none), then: all(none)},
		row{name: "closes all", want: all(crashed)},
		row{name: "becomes another", want: all(timeout), ms: 600},
		row{name: "becomes a parrot", want: all(timeout, malformed), ms: 600},
		row{name: "hangs", want: all(timeout), ms: 500, then: all(timeout)},
		row{name: "busy", params: ns(1, 2, 8), want: all(timeout), ms: 600},
		row{name: "stops itself", want: all(timeout), ms: 600},
		row{name: "stops its group", want: all(timeout), ms: 600},
		row{name: "ignores signals", want: all(none)},
		row{name: "ignores signals, hangs", want: all(timeout), ms: 600},
		row{name: "reads on, hangs", want: all(timeout), ms: 600},
		row{name: "garbage collects", want: all(timeout), ms: 600},
		row{name: "wakes up often", want: all(timeout), ms: 600},
		row{name: "answers late", params: ns(600, 700, 900), want: all(timeout), ms: 500, then: all(none, timeout)},
		row{name: "answers late twice", params: ns(600, 700), want: all(timeout), ms: 500, then: all(none, timeout, malformed)},
		row{name: "answers twice", params: ns(0, 1, 50), want: all(none, malformed)},
		row{name: "answers early", params: ns(0, 20), want: all(none, malformed, plugin.CodeUnavailable), ms: 4000},
		row{name: "answers often", params: ns(2, 1000), want: all(none, malformed)},
		row{name: "speaks on", want: all(none), then: all(timeout), ms: 800, watch: "quick"},
		row{name: "logs on", want: all(none), then: all(timeout), ms: 800},
		row{name: "errors on", want: all(none), then: all(timeout), ms: 800},
		row{name: "falls silent", want: all(none), then: all(timeout), ms: 800},
		row{name: "then noise", want: all(none), then: all(malformed)},
		row{name: "then exits", params: ns(0, 7), want: all(none), then: all(crashed)},
		row{name: "exits in between", params: ns(0, 20), want: all(none), then: all(none, crashed)},
		row{name: "in drops", params: ns(0, 1, 3), want: all(none)},
		row{name: "in drops", params: ns(100), want: all(timeout), ms: 800},
		row{name: "says no", params: upTo(9), want: all(failed)},
		row{name: "wrong result", params: upTo(19), want: all(malformed)},
		row{name: "wrong data", params: upTo(7), want: all(plugin.CodeInvalidOutput), operation: "typed"},
		row{name: "in progress", want: all(plugin.CodeInvalidOutput)},
		row{name: "large", params: ns(1<<10, 1<<20, 4<<20-200), want: all(none)},
		row{name: "large", params: ns(4<<20, 5<<20), want: all(malformed)},
		row{name: "many parts", params: ns(1000, 1_000_000), want: all(none)},
		row{name: "long number", params: with(ns(100, 10_000), "0", "1", "2"), want: all(none, plugin.CodeInvalidOutput)},
		row{name: "unknown notice", params: ns(1, 10_000), want: all(none)},
		row{name: "crlf", want: all(none)},
		row{name: "padded", params: ns(1, 1000, 1<<20), want: all(none)},
		row{name: "no newline, exits", want: all(none)},
		row{name: "no newline, hangs", want: all(timeout), ms: 600},
	)
	held := []string{"held|1", "held|10", "closed|1", "closed|10", "stopped|1"}
	for _, who := range []string{"a child", "a daemon"} {
		add("go",
			row{name: "leaves " + who, params: held, want: all(none)},
			row{name: "leaves " + who + ", exits", params: held, want: all(crashed)},
			row{name: "answers, leaves " + who, params: held, want: all(none)},
			row{name: "leaves " + who + ", hangs", params: held, want: all(timeout), ms: 600},
		)
	}
	add("go",
		row{name: "a child speaks", want: all(malformed)},
		row{name: "a child answers", want: all(none)},
		row{name: "a child reads", want: all(timeout), ms: 600},
		row{name: "floods stdout", params: with(ns(5, 100), "", "zeros", "binary", "lines"), want: all(malformed)},
		row{name: "floods stderr", params: with(ns(1, 60), "", "zeros", "binary"), want: all(none), ms: 60_000},
		row{name: "floods stderr", params: []string{"1|lines"}, want: all(none), ms: 60_000},
		row{name: "floods stderr", params: []string{"60|lines"}, want: all(timeout), ms: 1500}, // each of 31 million counts
		row{name: "stderr, no end", params: []string{"", "zeros", "binary", "lines"}, want: all(timeout), ms: 800},
		row{name: "stderr controls", want: all(none), watch: "quick"},
		row{name: "blank lines", params: ns(1), want: all(malformed)},
		row{name: "many logs", params: ns(1000, 100_000), want: all(none), watch: "quick", ms: 15_000},
		row{name: "many progress", params: ns(1000, 100_000), want: all(none), watch: "slow", ms: 60_000},
		row{name: "many contents", params: ns(5000, 100_000), want: all(exceeded), watch: "slow"},
		row{name: "large contents", params: []string{"10|1000000", "100|1000000"}, want: all(none)},
		row{name: "large contents", params: []string{"20000|100"}, want: all(exceeded), watch: "slow"},
		row{name: "logs, no end", want: all(timeout), ms: 800},
		row{name: "progress, no end", want: all(timeout), ms: 800, watch: "quick"},
		row{name: "large logs", params: []string{"10|4000000", "1000|100000"}, want: all(none), watch: "quick", ms: 60_000},
		row{name: "other's events", params: ns(1, 100_000), want: all(none), watch: "quick", ms: 15_000},
		row{name: "notices, no end", want: all(timeout), ms: 800},
		row{name: "both pipes full", params: []string{"", "binary"}, want: all(timeout), ms: 800, input: 2 << 20},
		row{name: "asks, never reads", params: []string{"1000|1", "20000|60"}, want: all(timeout), ms: 1500},
		row{name: "hoards", params: ns(4, 40), want: all(timeout), ms: 1500},
	)
	add("go",
		row{name: "asks with no token", want: all(none)},
		row{name: "asks with a made token", want: all(none)},
		row{name: "asks with a cut token", params: ns(0, 15), want: all(none)},
		row{name: "asks with a long token", params: ns(0, 10_000), want: all(none)},
		row{name: "asks with upper case", want: all(none)},
		row{name: "asks for what is not", params: upTo(8), want: all(none)},
		row{name: "asks for what it lacks", want: all(none)},
		row{name: "asks with wrong args", params: upTo(7), want: all(none)},
		row{name: "asks for no method", params: upTo(5), want: all(none)},
		row{name: "asks with a long name", params: ns(100, 1_000_000), want: all(none)},
		row{name: "asks for an operation", want: all(none)},
		row{name: "asks after the answer", want: all(none), then: all(none)},
		row{name: "asks after its time", params: ns(600, 900), want: all(timeout), ms: 500, then: all(none, timeout)},
		row{name: "asks itself", want: all(none), ms: 15_000},
		row{name: "asks often", params: ns(10, 2000), want: all(none)},
		row{name: "asks much at once", params: ns(64, 65, 5000), want: all(none)},
		row{name: "asks and does not wait", params: ns(10, 1000), want: all(none)},
		row{name: "asks with odd ids", params: upTo(6), want: all(none)},
		row{name: "asks with bad ids", params: upTo(6), want: all(malformed, timeout), ms: 800},
		row{name: "fills the cache", params: ns(10, 150), want: all(none)},
		row{name: "keeps too much", params: ns(1, 1<<20), want: all(none)},
	)
	add("go",
		row{name: "members", params: ns(1000, 60_000), want: all(none)},
		row{name: "members", params: ns(100_000, 300_000), want: all(plugin.CodeOutputTooLarge)},
		row{name: "rows", params: ns(1000, 400_000), want: all(none)},
		row{name: "rows", params: ns(400_000), want: all(plugin.CodeOutputTooLarge), operation: "typed"},
		row{name: "nests", params: ns(1000, 250_000), want: all(none)},
		row{name: "texts", params: ns(1000, 1_000_000), want: all(none)},
		row{name: "floods with text", params: floods(1<<20, 40), want: all(none), operation: "act", ms: 60_000},
		row{name: "floods with members", params: floods(500<<10, 20), want: all(none), operation: "act", ms: 60_000},
		row{name: "floods with arrays", params: floods(500<<10, 20), want: all(none), operation: "act", ms: 60_000},
		row{name: "floods with text", params: []string{"cache.set|20|200000", "storage.put|60000|200", "cursor.set|60000|200", "operations.call|60000|200"}, want: all(none), operation: "act", ms: 60_000},
		row{name: "asks for much", params: []string{"cache.get|20|500000", "storage.get|60|60000", "cursor.get|60|60000"}, want: all(none), operation: "act", ms: 60_000},
		row{name: "asks for much and rests", params: []string{"cache.get|20|500000"}, want: all(none), operation: "act", ms: 60_000},
		row{name: "asks for much and is gone", params: []string{"cache.get|20|500000"}, want: all(timeout), operation: "act", ms: 9000},
		row{name: "reports much", params: []string{"log|1000000|40", "progress|1000000|40", "content|1000000|40"}, want: all(none, exceeded), watch: "quick", ms: 60_000},
	)
	add("go",
		row{name: "memory bomb", params: ns(64, 1024, 16<<10), want: all(exceeded), caged: true},
		row{name: "memory bomb in a child", want: all(none, exceeded), caged: true},
		row{name: "address bomb", want: all(none, exceeded, crashed), caged: true},
		row{name: "fork bomb", params: upTo(2), want: all(exceeded, timeout), ms: 2500, caged: true},
		row{name: "thread bomb", want: all(exceeded, crashed, timeout), ms: 2500, caged: true},
		row{name: "file bomb", want: all(none, exceeded), caged: true},
		row{name: "pipe bomb", want: all(none, exceeded), caged: true},
		row{name: "disk bomb", params: ns(4, 1024), want: all(none, exceeded), caged: true},
		row{name: "file too large", want: all(none, exceeded), caged: true},
		row{name: "inode bomb", params: []string{"files", "directories"}, want: all(none, exceeded), ms: 15_000, caged: true},
		row{name: "sparse file", params: ns(1, 1000, 8_000_000), want: all(none, exceeded), caged: true},
		row{name: "deep directories", params: ns(100, 5000), want: all(none, exceeded), caged: true},
		row{name: "changes its program", want: all(none), caged: true},
		row{name: "changes its package", want: all(none), caged: true},
		row{name: "removes its package", want: all(none), caged: true},
		row{name: "moves its program", want: all(none), caged: true},
		row{name: "writes elsewhere", params: upTo(5), want: all(none), caged: true},
		row{name: "signals the host", want: all(none), caged: true},
	)
	add("v1",
		row{name: "silent", want: all(timeout), ms: 2000},
		row{name: "busy", want: all(timeout), ms: 2000},
		row{name: "exits at once", params: ns(0, 1, 255), want: all(crashed)},
		row{name: "exits", params: ns(0, 1, 255), want: all(crashed)},
		row{name: "hangs", want: all(timeout), ms: 600},
		row{name: "opens", params: upTo(10), want: all(handshake)},
		row{name: "opens late", params: ns(0, 300), want: all(none)},
		row{name: "other plugin", params: upTo(3), want: all(handshake)},
		row{name: "answers", params: upTo(9), want: all(malformed)},
		row{name: "other id", params: upTo(4), want: all(malformed)},
		row{name: "answers, exits", params: ns(0), want: all(none)},
		row{name: "answers, exits", params: ns(1, 255), want: all(crashed)},
		row{name: "answers, stays", want: all(crashed)},
		row{name: "answers, dies", want: all(crashed)},
		row{name: "answers often", params: ns(2, 1000), want: all(malformed)},
		row{name: "long answer", params: ns(1000, 500_000), want: all(none)},
		row{name: "long answer", params: ns(2<<20, 8<<20), want: all(malformed)},
		row{name: "in drops", params: ns(0, 1), want: all(none)},
		row{name: "in drops", params: ns(100), want: all(timeout), ms: 800},
		row{name: "floods", params: ns(2, 64), want: all(malformed)},
		row{name: "floods stderr", params: ns(1, 60), want: all(none), ms: 60_000},
		row{name: "leaves a child", want: all(none, crashed)},
		row{name: "leaves a child, hangs", want: all(timeout), ms: 600},
		row{name: "stops itself", want: all(timeout), ms: 600},
		row{name: "never reads", want: all(timeout), ms: 2000},
		row{name: "memory bomb", want: all(exceeded), caged: true},
	)
	add("python",
		row{name: "dies", params: ns(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 26, 27, 29, 30, 31, 34, 64), want: all(crashed)},
		row{name: "dies", params: ns(24, 25), want: all(crashed, exceeded)}, // as the system ends a program that passes a limit
		row{name: "dies", params: ns(19, 20, 21, 22), want: all(timeout), ms: 1500},
		row{name: "dies", params: ns(17, 18, 23, 28), want: all(timeout), ms: 1500},
		row{name: "segfault", want: all(crashed)},
		row{name: "recursion", want: all(crashed)},
		row{name: "deep recursion", want: all(crashed, timeout, exceeded), ms: 4000},
		row{name: "not a number", params: upTo(3), want: all(malformed)},
		row{name: "surrogate", params: upTo(3), want: all(malformed)},
		row{name: "prints", params: upTo(5), want: all(malformed)},
		row{name: "raises", params: upTo(6), want: all(crashed)},
		row{name: "exits in a thread", want: all(none), then: all(none)},
		row{name: "thread lives on", want: all(timeout), ms: 1500},
		row{name: "exits at last", want: all(timeout), ms: 1500},
		row{name: "buffered", want: all(timeout), ms: 1500},
		row{name: "buffered, exits", want: all(crashed)},
		row{name: "regex", want: all(timeout), ms: 1500},
		row{name: "large integer", want: all(timeout), ms: 1500},
		row{name: "busy", want: all(timeout), ms: 1500},
		row{name: "busy threads", params: ns(1, 8), want: all(timeout), ms: 1500},
		row{name: "forks", params: upTo(2), want: all(none), then: all(none)},
		row{name: "fork answers", want: all(none)},
		row{name: "fork, both answer", want: all(none, malformed)},
		row{name: "becomes another", want: all(timeout), ms: 1500},
		row{name: "closes", params: ns(1), want: all(crashed)},
		row{name: "closes", params: ns(0, 2), want: all(timeout), ms: 1500},
		row{name: "stdout to stderr", want: all(crashed, timeout), ms: 1500},
		row{name: "another reader", want: all(timeout), ms: 1500},
		row{name: "a child speaks", want: all(malformed)},
		row{name: "nested", params: ns(60), want: all(none)},
		row{name: "nested", params: ns(64, 5000), want: all(malformed)},
		row{name: "garbage", want: all(timeout), ms: 1500},
		row{name: "memory bomb", params: ns(0, 64, 4096), want: all(exceeded), caged: true},
		row{name: "list bomb", want: all(exceeded), caged: true},
		row{name: "thread bomb", want: all(exceeded, timeout), ms: 2500, caged: true},
		row{name: "sockets", params: upTo(4), want: all(none, crashed), caged: true},
		row{name: "changes its file", want: all(none), caged: true},
	)
	add("node",
		row{name: "exits", params: ns(0, 1, 13, 255), want: all(crashed)},
		row{name: "aborts", want: all(crashed)},
		row{name: "throws", params: upTo(6), want: all(crashed)},
		row{name: "throws later", params: ns(0, 100), want: all(crashed)},
		row{name: "rejects", want: all(crashed)},
		row{name: "rejects nothing", want: all(crashed)},
		row{name: "blocks", want: all(timeout), ms: 1500},
		row{name: "microtasks", want: all(timeout, exceeded), ms: 1500},
		row{name: "ticks", want: all(timeout), ms: 1500},
		row{name: "immediates", want: all(timeout), ms: 1500},
		row{name: "waits", want: all(timeout), ms: 1500},
		row{name: "regex", want: all(timeout), ms: 1500},
		row{name: "recursion", want: all(crashed)},
		row{name: "console", params: upTo(5), want: all(malformed)},
		row{name: "surrogate", params: upTo(3), want: all(malformed)},
		row{name: "undefined", params: upTo(5), want: all(malformed)},
		row{name: "deep", params: ns(1, 60), want: all(none)},
		row{name: "deep", params: ns(64, 10_000), want: all(malformed)},
		row{name: "writes and exits", params: ns(10), want: all(none)},
		row{name: "writes and exits", params: ns(5 << 20), want: all(malformed)},
		row{name: "writes in the dark", want: all(crashed, timeout), ms: 1500},
		row{name: "stops", want: all(timeout), ms: 1500},
		row{name: "deaf", want: all(none), then: all(none)},
		row{name: "keeps talking", params: ns(1, 20), want: all(none), then: all(none)},
		row{name: "late", params: ns(1800), want: all(timeout), ms: 1500, then: all(none, timeout)},
		row{name: "late and stray", params: ns(10, 100), want: all(none)},
		row{name: "timers", params: ns(10, 10_000), want: all(none)},
		row{name: "detached", want: all(none), then: all(none)},
		row{name: "holds pipes", want: all(crashed)},
		row{name: "a child speaks", want: all(malformed)},
		row{name: "worker speaks", want: all(malformed)},
		row{name: "workers spin", params: ns(1, 4), want: all(timeout), ms: 1500},
		row{name: "sync output", params: ns(5, 50), want: all(malformed)},
		row{name: "exits before it began", want: all(crashed)},
		row{name: "unref", want: all(crashed, timeout), ms: 1500},
		row{name: "heap bomb", want: all(exceeded, crashed), ms: 15_000, caged: true},
		row{name: "buffer bomb", want: all(exceeded), ms: 15_000, caged: true},
		row{name: "string bomb", want: all(exceeded, crashed), ms: 15_000, caged: true},
		row{name: "worker bomb", want: all(exceeded, crashed, timeout), ms: 2500, caged: true},
		row{name: "connects", params: upTo(3), want: all(none, crashed), caged: true},
		row{name: "changes its file", want: all(none), caged: true},
	)
	add("shell",
		row{name: "exits", params: ns(0, 1, 3, 126, 127, 130, 255), want: all(crashed)},
		row{name: "fails", want: all(crashed)},
		row{name: "dies", params: ns(1, 2, 6, 9, 13, 14, 15), want: all(crashed)},
		row{name: "unbound", want: all(crashed)},
		row{name: "busy", want: all(timeout), ms: 800},
		row{name: "hangs", want: all(timeout), ms: 800},
		row{name: "stops", want: all(timeout), ms: 800},
		row{name: "deaf", want: all(none), then: all(none)},
		row{name: "prints", params: ns(0, 17), want: all(malformed)},
		row{name: "traces", want: all(none), watch: "quick"},
		row{name: "reads", want: all(timeout), ms: 800},
		row{name: "half", want: all(malformed)},
		row{name: "closes_stdout", want: all(crashed)},
		row{name: "closes_stderr", want: all(none), then: all(none)},
		row{name: "subshell", want: all(none)},
		row{name: "background", want: all(none)},
		row{name: "orphan", want: all(none)},
		row{name: "orphan_exits", want: all(crashed)},
		row{name: "pipeline", want: all(timeout), ms: 800},
		row{name: "becomes", want: all(crashed)},
		row{name: "twice", want: all(none, malformed)},
		row{name: "flood", want: all(timeout), ms: 800},
		row{name: "errors", params: ns(10, 5000), want: all(none)},
		row{name: "spaces", want: all(none)},
		row{name: "quotes", want: all(malformed)},
		row{name: "forks", want: all(exceeded, timeout, crashed), ms: 2500, caged: true},
		row{name: "own_file", want: all(none), caged: true},
	)
	return table
}

// A trial is one case: a row with one of its parameters.
type trial struct {
	row
	n     int
	param string
}

// String names a case as failures do.
func (c *trial) String() string { return strings.TrimSuffix(c.program+"/"+c.name+"|"+c.param, "|") }

// floods reports whether the case makes the host work on tens of megabytes.
func (c *trial) floods() bool {
	return slices.Contains([]string{"members", "rows", "nests", "texts", "reports much"}, c.name) || strings.HasPrefix(c.name, "floods with") || strings.HasPrefix(c.name, "asks for much")
}

// behaviour is what the case is a parameter of.
func (c *trial) behaviour() string { return c.program + "/" + c.name }

// session tells the program what to do.
func (c *trial) session(n int) string {
	return strings.TrimSuffix(fmt.Sprintf("%d~%s|%s", n, c.name, c.param), "|")
}

// trials returns every case: first one of each behaviour, then the others, each
// part in an order that is always the same and keeps equals apart.
func trials() []*trial {
	var firsts, others []*trial
	seen := map[string]bool{}
	n := 0
	for _, r := range rows() {
		for _, param := range r.params {
			c := &trial{row: r, n: n, param: param}
			n++
			if seen[c.behaviour()] {
				others = append(others, c)
			} else {
				firsts = append(firsts, c)
			}
			seen[c.behaviour()] = true
		}
	}
	return append(spread(firsts), spread(others)...)
}

// honest returns the well-behaved counterpart of a case: a process of the same
// program that is started, answers once, and rests.
func honest(c *trial) *trial {
	name := "good"
	if c.program == "v1" {
		name = "answers, exits"
	}
	for _, other := range trials() {
		if other.program == c.program && other.name == name {
			return &trial{row: row{program: c.program, name: name, want: all(none)}, n: other.n, param: other.param}
		}
	}
	panic("there is nothing good of " + c.program)
}

// spread mixes a list by a step that has no divisor in common with its length.
func spread(list []*trial) []*trial {
	step := 61
	for len(list)%step == 0 {
		step += 2
	}
	mixed := make([]*trial, len(list))
	for i := range list {
		mixed[i] = list[i*step%len(list)]
	}
	return mixed
}
