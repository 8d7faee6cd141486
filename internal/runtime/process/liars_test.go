package process_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"
)

// A liar is a plugin that misbehaves in one way. It is a real process: the
// test binary started again.
//
// Those of protocol 2 begin with a true handshake unless the handshake is
// where they lie. "ID" in what they say stands for the id of the request.

var stdin = bufio.NewReaderSize(os.Stdin, 1<<20)

var idOf = regexp.MustCompile(`"(?:id|request_id)":("[^"]*"|\d+)`)

// hear reads one line of the host and returns its id.
func hear() string {
	line, err := stdin.ReadString('\n')
	if err != nil {
		os.Exit(0)
	}
	if m := idOf.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return "0"
}

// say writes exactly this.
func say(id string, text string) { fmt.Print(strings.ReplaceAll(text, "ID", id)) }

const (
	opening  = `{"jsonrpc":"2.0","id":ID,"result":{"protocol":"2","plugins":[{"name":"test.plugin","version":"1.0.0"}],"concurrency":8}}` + "\n"
	answer   = `{"jsonrpc":"2.0","id":ID,"result":{"status":"succeeded","data":1}}` + "\n"
	opening1 = `{"type":"handshake","manifest":{"plugin_id":"test.plugin","plugin_version":"1.0.0","protocol_version":"rterm.plugin.v1","exposed_tools":["echo"],"capabilities":["tool.execute"]}}` + "\n"
	answer1  = `{"type":"response","request_id":ID,"status":"ok","output":{"a":1},"metadata":{}}` + "\n"
)

// opens says this in place of the handshake of protocol 2, and then serves.
func opens(with string) func() {
	return func() {
		say(hear(), with)
		for {
			say(hear(), answer)
		}
	}
}

// answers opens truly and then says this in place of each answer.
func answers(with string) func() {
	return func() {
		say(hear(), opening)
		for {
			say(hear(), with)
		}
	}
}

// opens1 and answers1 are the same for protocol 1.
func opens1(with string) func() {
	return func() {
		say(hear(), with)
		say(hear(), answer1)
	}
}

func answers1(with string) func() {
	return func() {
		say(hear(), opening1)
		say(hear(), with)
	}
}

func handshake1(old, with string) func() { return opens1(strings.Replace(opening1, old, with, 1)) }

// forever blocks. The runtime does not take a read from a pipe for a deadlock.
func forever() {
	r, w, err := os.Pipe()
	if err != nil {
		os.Exit(1)
	}
	_, _ = r.Read(make([]byte, 1))
	runtime.KeepAlive(w)
}

var liars = map[string]func(){
	// Protocol 2: the opening.
	"opens/not json":           opens("hello\n"),
	"opens/an array":           opens("[]\n"),
	"opens/an error":           opens(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"not today"}}` + "\n"),
	"opens/another version":    opens(strings.Replace(opening, `"2"`, `"3"`, 1)),
	"opens/no version":         opens(strings.Replace(opening, `"protocol":"2",`, ``, 1)),
	"opens/another plugin":     opens(strings.Replace(opening, "test.plugin", "other.plugin", 1)),
	"opens/another release":    opens(strings.Replace(opening, "1.0.0", "1.0.1", 1)),
	"opens/absurd concurrency": opens(strings.Replace(opening, `:8`, `:100000`, 1)),
	"opens/wrong shape":        opens(`{"jsonrpc":"2.0","id":ID,"result":[1]}` + "\n"),
	"opens/never":              func() { hear(); forever() },
	"opens/exits":              func() { hear(); os.Exit(3) },
	"opens/twice":              opens(opening + opening),

	// Protocol 2: the answers.
	"answers/not json":          answers("hello\n"),
	"answers/half a line":       func() { say(hear(), opening); hear(); fmt.Print(`{"jsonrpc":"2.0","id":`); os.Exit(0) },
	"claims to be fresh":        answers(`{"jsonrpc":"2.0","id":ID,"result":{"status":"succeeded","data":1,"metrics":{"fresh_process":true,"tokens_in":1}}}` + "\n"),
	"answers/no newline":        func() { say(hear(), opening); say(hear(), strings.TrimSpace(answer)); os.Exit(0) },
	"answers/two":               answers(answer + answer),
	"answers/two on a line":     answers(strings.TrimSpace(answer) + answer),
	"answers/a long line":       answers(`{"jsonrpc":"2.0","id":ID,"result":{"status":"succeeded","data":"` + strings.Repeat("a", 5<<20) + `"}}` + "\n"),
	"answers/100 MB":            func() { say(hear(), opening); hear(); flood(os.Stdout, 100<<20); forever() },
	"answers/bad utf-8":         answers("{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"status\":\"succeeded\",\"data\":\"\xff\"}}\n"),
	"answers/a surrogate":       answers(`{"jsonrpc":"2.0","id":ID,"result":{"status":"succeeded","data":"\ud800"}}` + "\n"),
	"answers/duplicate keys":    answers(`{"jsonrpc":"2.0","id":ID,"result":{"status":"succeeded","data":{"a":1,"a":2}}}` + "\n"),
	"answers/a byte order mark": answers("\xef\xbb\xbf" + answer),
	"answers/nul bytes":         answers("\x00" + answer),
	"answers/too deep":          answers(`{"jsonrpc":"2.0","id":ID,"result":{"status":"succeeded","data":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}` + "\n"),
	"answers/another id":        answers(strings.Replace(answer, "ID", "4711", 1)),
	"answers/a text id":         answers(strings.Replace(answer, "ID", `"ID"`, 1)),
	"answers/unknown member":    answers(strings.Replace(answer, `"id"`, `"x":1,"id"`, 1)),
	"answers/wrong case":        answers(strings.Replace(answer, `"result"`, `"Result"`, 1)),
	"answers/no status":         answers(strings.Replace(answer, `"status":"succeeded",`, ``, 1)),
	"answers/a wrong status":    answers(strings.Replace(answer, `succeeded`, `ok`, 1)),
	"answers/result and error":  answers(strings.Replace(answer, `"result"`, `"error":{"code":1,"message":"m"},"result"`, 1)),
	"answers/an empty error":    answers(`{"jsonrpc":"2.0","id":ID,"error":{}}` + "\n"),
	"answers/a bare value":      answers(`{"jsonrpc":"2.0","id":ID,"result":1}` + "\n"),
	"answers/exits 0":           func() { say(hear(), opening); hear(); os.Exit(0) },
	"answers/exits 9":           func() { say(hear(), opening); hear(); os.Exit(9) },
	"answers/is killed":         func() { say(hear(), opening); hear(); _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) },
	"answers/closes stdout":     func() { say(hear(), opening); hear(); os.Stdout.Close(); forever() },
	"answers/a bad emit":        answers(`{"jsonrpc":"2.0","method":"emit","params":7}` + "\n"),

	// Protocol 2: what is said of a call that is not carried out.
	"shows/nothing":             answers(`{"jsonrpc":"2.0","id":ID,"result":{}}` + "\n"),
	"shows/a bare value":        answers(`{"jsonrpc":"2.0","id":ID,"result":"mail to ann"}` + "\n"),
	"shows/an execution":        answers(answer),
	"shows/too much":            answers(`{"jsonrpc":"2.0","id":ID,"result":{"preview":"` + strings.Repeat("a", 64<<10) + `"}}` + "\n"),
	"shows/no such method":      answers(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"what?"}}` + "\n"),
	"shows/an error":            answers(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no","data":{"code":"NOPE"}}}` + "\n"),
	"shows/not json":            answers("hello\n"),
	"shows/exits":               func() { say(hear(), opening); hear(); os.Exit(9) },
	"shows/never":               func() { say(hear(), opening); hear(); forever() },
	"finds/nothing":             answers(`{"jsonrpc":"2.0","id":ID,"result":{}}` + "\n"),
	"finds/an execution":        answers(answer),
	"finds/a wrong outcome":     answers(`{"jsonrpc":"2.0","id":ID,"result":{"outcome":"done"}}` + "\n"),
	"finds/data of nothing":     answers(`{"jsonrpc":"2.0","id":ID,"result":{"outcome":"not_done","data":1}}` + "\n"),
	"finds/success and failure": answers(`{"jsonrpc":"2.0","id":ID,"result":{"outcome":"succeeded","error":{"code":"a","message":"b"}}}` + "\n"),
	"finds/too much":            answers(`{"jsonrpc":"2.0","id":ID,"result":{"outcome":"unknown","evidence":"` + strings.Repeat("a", 64<<10) + `"}}` + "\n"),
	"finds/no such method":      answers(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"what?"}}` + "\n"),
	"finds/an error":            answers(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no","data":{"code":"NOPE"}}}` + "\n"),
	"finds/two":                 answers(`{"jsonrpc":"2.0","id":4711,"result":{"outcome":"unknown"}}` + "\n"),
	"finds/exits":               func() { say(hear(), opening); hear(); os.Exit(9) },
	"finds/never":               func() { say(hear(), opening); hear(); forever() },

	// Protocol 2: what is said of an event.
	"hears/not json":      answers("yes\n"),
	"hears/a bare value":  answers(`{"jsonrpc":"2.0","id":ID,"result":true}` + "\n"),
	"hears/a list":        answers(`{"jsonrpc":"2.0","id":ID,"result":[{"allow":true}]}` + "\n"),
	"hears/nothing":       answers(`{"jsonrpc":"2.0","id":ID,"result":null}` + "\n"),
	"hears/no word":       answers(`{"jsonrpc":"2.0","id":ID,"result":{"reason":"because"}}` + "\n"),
	"hears/null":          answers(`{"jsonrpc":"2.0","id":ID,"result":{"allow":null}}` + "\n"),
	"hears/a text":        answers(`{"jsonrpc":"2.0","id":ID,"result":{"allow":"true"}}` + "\n"),
	"hears/a long reason": answers(`{"jsonrpc":"2.0","id":ID,"result":{"allow":false,"reason":["a"]}}` + "\n"),
	"hears/no object":     answers(`{"jsonrpc":"2.0","id":ID,"result":{"allow":true,"payload":"{}"}}` + "\n"),
	"hears/duplicates":    answers(`{"jsonrpc":"2.0","id":ID,"result":{"allow":false,"allow":true}}` + "\n"),
	"hears/two":           answers(`{"jsonrpc":"2.0","id":4711,"result":{"allow":true}}` + "\n"),
	"hears/10 MB": func() {
		say(hear(), opening)
		say(hear(), `{"jsonrpc":"2.0","id":ID,"result":{"allow":true,"payload":{"a":"`)
		flood(os.Stdout, 10<<20)
		fmt.Print("\"}}}\n")
		forever()
	},
	"hears/no such method": answers(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"what?"}}` + "\n"),
	"hears/an error":       answers(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no","data":{"code":"NOPE"}}}` + "\n"),
	"hears/exits":          func() { say(hear(), opening); hear(); os.Exit(9) },
	"hears/never":          func() { say(hear(), opening); hear(); forever() },
	"hears/never reads":    func() { say(hear(), opening); forever() },

	// Protocol 2: bad manners that do no harm.
	"manners/crlf":           answers(strings.Replace(answer, "\n", "\r\n", 1)),
	"manners/last words":     func() { say(hear(), opening); fmt.Print(strings.ReplaceAll(answer, "ID", hear())); os.Exit(1) },
	"manners/unknown notice": answers(`{"jsonrpc":"2.0","method":"$/later","params":{}}` + "\n" + answer),
	"manners/early stderr":   func() { flood(os.Stderr, 16<<20); say(hear(), opening); say(hear(), answer); forever() },
	"manners/stderr flood":   func() { say(hear(), opening); id := hear(); flood(os.Stderr, 16<<20); say(id, answer); forever() },
	"manners/drop by drop": func() {
		say(hear(), opening)
		for _, b := range []byte(strings.ReplaceAll(answer, "ID", hear())) {
			_, _ = os.Stdout.Write([]byte{b})
		}
		forever()
	},
	"manners/tiny lines": func() {
		say(hear(), opening)
		id := hear()
		out := bufio.NewWriterSize(os.Stdout, 1<<16)
		for range 20_000 {
			_, _ = out.WriteString(`{"jsonrpc":"2.0","method":"log","params":{"level":"debug","message":"x"}}` + "\n")
		}
		_ = out.Flush()
		say(id, answer)
		forever()
	},

	// Protocol 2: lives that end badly.
	"lives/never reads": func() { say(hear(), opening); forever() },
	"lives/ignores sigterm": func() {
		signal.Ignore(syscall.SIGTERM)
		say(hear(), opening)
		for {
			say(hear(), answer)
			if _, err := stdin.Peek(1); err == io.EOF {
				forever()
			}
		}
	},
	"lives/leaves a child": func() {
		say(hear(), opening)
		id := hear()
		child := exec.Command("/bin/sleep", orphan)
		child.Stdout, child.Stderr = os.Stdout, os.Stderr // it holds both pipes open
		if err := child.Start(); err != nil {
			os.Exit(1)
		}
		say(id, answer)
		os.Exit(0)
	},

	// Protocol 1.
	"v1/good":                   answers1(answer1),
	"v1/no newline":             answers1(strings.TrimSpace(answer1)),
	"v1/extra members":          answers1(strings.Replace(answer1, `"metadata"`, `"from_the_future":1,"metadata"`, 1)),
	"v1/opens not json":         opens1("hello\n"),
	"v1/opens an array":         opens1("[1]\n"),
	"v1/opens as a response":    handshake1(`"type":"handshake"`, `"type":"response"`),
	"v1/opens without a type":   handshake1(`"type":"handshake",`, ``),
	"v1/no manifest":            opens1(`{"type":"handshake"}` + "\n"),
	"v1/no plugin_id":           handshake1(`"plugin_id":"test.plugin",`, ``),
	"v1/no plugin_version":      handshake1(`"plugin_version":"1.0.0",`, ``),
	"v1/no exposed_tools":       handshake1(`"exposed_tools":["echo"],`, ``),
	"v1/exposed_tools a text":   handshake1(`["echo"]`, `"echo"`),
	"v1/duplicate tools":        handshake1(`["echo"]`, `["echo","echo"]`),
	"v1/another id":             handshake1(`test.plugin`, `other.plugin`),
	"v1/another plugin_version": handshake1(`"plugin_version":"1.0.0"`, `"plugin_version":"1.0.1"`),
	"v1/duplicate keys":         handshake1(`"type"`, `"type":"handshake","type"`),
	"v1/two handshakes":         opens1(opening1 + opening1),
	"v1/another version":        handshake1(`rterm.plugin.v1`, `rterm.plugin.v2`),
	"v1/no version":             handshake1(`"protocol_version":"rterm.plugin.v1",`, ``),
	"v1/another tool":           handshake1(`["echo"]`, `["shout"]`),
	"v1/no capabilities":        handshake1(`,"capabilities":["tool.execute"]`, ``),
	"v1/empty capabilities":     handshake1(`["tool.execute"]`, `[]`),
	"v1/more capabilities":      handshake1(`["tool.execute"]`, `["tool.execute","net.connect"]`),
	"v1/padded capability":      handshake1(`["tool.execute"]`, `[" tool.execute"]`),
	"v1/duplicate capability":   handshake1(`["tool.execute"]`, `["tool.execute","tool.execute"]`),
	"v1/blank capability":       handshake1(`["tool.execute"]`, `["tool.execute",""]`),
	"v1/look-alike capability":  handshake1(`["tool.execute"]`, `["tооl.execute"]`), // two Cyrillic letters
	"v1/silent":                 func() { hear(); forever() },
	"v1/closes at once":         func() {},
	"v1/exits in the handshake": func() { hear(); fmt.Print(`{"type":"hand`); os.Exit(0) },
	"v1/answers not json":       answers1("hello\n"),
	"v1/answers an array":       answers1("[]\n"),
	"v1/answers half a line":    answers1(answer1[:20]),
	"v1/another request_id":     answers1(strings.Replace(answer1, "ID", `"r9"`, 1)),
	"v1/another type":           answers1(strings.Replace(answer1, `"type":"response"`, `"type":"request"`, 1)),
	"v1/another status":         answers1(strings.Replace(answer1, `"ok"`, `"fine"`, 1)),
	"v1/ok with an error":       answers1(strings.Replace(answer1, `"output"`, `"error":{"code":"c","message":"m"},"output"`, 1)),
	"v1/error without error":    answers1(strings.Replace(answer1, `"ok"`, `"error"`, 1)),
	"v1/error without code":     answers1(`{"type":"response","request_id":ID,"status":"error","error":{"message":"m"}}` + "\n"),
	"v1/error without message":  answers1(`{"type":"response","request_id":ID,"status":"error","error":{"code":"c"}}` + "\n"),
	"v1/two answers":            answers1(answer1 + answer1),
	"v1/bad utf-8":              answers1(strings.Replace(answer1, `"a"`, "\"\xff\"", 1)),
	"v1/a long answer":          answers1(strings.Replace(answer1, `1}`, `"`+strings.Repeat("a", 2<<20)+`"}`, 1)),
	"v1/a long handshake":       opens1(strings.Replace(opening1, `echo`, strings.Repeat("a", 2<<20), 1)),
	"v1/never answers":          func() { say(hear(), opening1); hear(); fmt.Fprintln(os.Stderr, "the request came"); forever() },
	"v1/dies before answering":  func() { say(hear(), opening1); hear(); os.Exit(0) },
	"v1/fails after answering":  func() { say(hear(), opening1); say(hear(), answer1); os.Exit(4) },
	"v1/stays after answering":  func() { say(hear(), opening1); say(hear(), answer1); forever() },
	"v1/refuses":                answers1(`{"type":"response","request_id":ID,"status":"error","error":{"code":"invalid_input","message":"text is required"}}` + "\n"),
	"v1/refuses and fails": func() {
		say(hear(), opening1)
		say(hear(), `{"type":"response","request_id":ID,"status":"error","error":{"code":"NOPE","message":"no"}}`+"\n")
		os.Exit(5)
	},
	"v1/never reads the request": func() { say(hear(), opening1); say(`"call-1"`, answer1) },
}

// flood writes n bytes without a newline.
func flood(w io.Writer, n int) {
	chunk := []byte(strings.Repeat("x", 1<<16))
	for ; n > 0; n -= len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			forever()
		}
	}
}

// orphan is how long a child that is left behind would sleep, by which it is found.
const orphan = "6037"

// ownWords are messages of errors that plugins of protocol 1 answer with: each is a role.
var ownWords = []string{"text is required", "v1: no", ": ", "two\nlines", "é\u2028", " padded "}

func init() {
	for i, message := range ownWords {
		raw, err := json.Marshal(message)
		if err != nil {
			panic(err)
		}
		liars[fmt.Sprintf("own words %d", i)] = answers1(`{"type":"response","request_id":ID,"status":"error","error":{"code":"NO","message":` + string(raw) + "}}\n")
	}
}
