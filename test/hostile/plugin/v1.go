package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A behaviour1 is what a plugin of protocol 1 does: a handshake, one request,
// one response, one exit.
type behaviour1 func(p *peer1)

// peer1 is its end of the pipes.
type peer1 struct {
	in *bufio.Reader
	id string // of the plugin
	n  int    // the parameter
}

const (
	truth1  = `{"type":"handshake","manifest":{"plugin_id":"PLUGIN","plugin_version":"1.0.0","protocol_version":"rterm.plugin.v1","exposed_tools":["run"],"capabilities":["tool.execute"]}}` + "\n"
	honest1 = `{"type":"response","request_id":"ID","status":"ok","output":1,"metadata":{}}` + "\n"
)

var idOf = regexp.MustCompile(`"request_id":"([^"]*)"`)

// hear reads one line and returns the request's id.
func (p *peer1) hear() string {
	line, err := p.in.ReadString('\n')
	if err != nil && line == "" {
		os.Exit(0)
	}
	if m := idOf.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}

// begin shakes hands and returns the id of the request.
func (p *peer1) begin() string {
	p.hear()
	write([]byte(strings.Replace(truth1, "PLUGIN", p.id, 1)))
	return p.hear()
}

// answer1 returns an honest response.
func answer1(id string) string { return strings.Replace(honest1, "ID", id, 1) }

var behaviours1 = map[string]behaviour1{
	"silent":        func(p *peer1) { p.hear(); forever() },
	"busy":          func(p *peer1) { p.hear(); spin() },
	"exits at once": func(p *peer1) { os.Exit(p.n) },
	"exits":         func(p *peer1) { p.begin(); os.Exit(p.n) },
	"hangs":         func(p *peer1) { p.begin(); forever() },
	"opens": func(p *peer1) {
		p.hear()
		fmt.Println(pick(p.n, "hello", "[]", "1", "null", "", `{"type":"handshake"}`, "\xff", strings.Repeat("[", 10_000), "{", `{"type":"response"}`))
		p.hear()
		forever()
	},
	"opens late":   func(p *peer1) { time.Sleep(time.Duration(p.n) * time.Millisecond); write([]byte(answer1(p.begin()))) },
	"other plugin": func(p *peer1) { p.id += pick(p.n, ".other", " ", "\\u0000"); p.begin(); forever() },
	"answers": func(p *peer1) {
		p.begin()
		fmt.Println(pick(p.n, "hello", "[]", "1", "null", "", "{", `{"type":"response"}`, "\xff", strings.Repeat("[", 10_000)))
		os.Exit(0)
	},
	"other id":       func(p *peer1) { write([]byte(answer1(p.begin() + pick(p.n, "x", " ", "\\u0000", "é")))) },
	"answers, exits": func(p *peer1) { write([]byte(answer1(p.begin()))); os.Exit(p.n) },
	"answers, stays": func(p *peer1) { write([]byte(answer1(p.begin()))); forever() },
	"answers, dies":  func(p *peer1) { write([]byte(answer1(p.begin()))); _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) },
	"answers often":  func(p *peer1) { write([]byte(strings.Repeat(answer1(p.begin()), p.n))) },
	"long answer": func(p *peer1) {
		id := p.begin()
		write([]byte(strings.Replace(answer1(id), "1,", `"`+strings.Repeat("a", p.n)+`",`, 1)))
	},
	"in drops": func(p *peer1) {
		for _, c := range []byte(answer1(p.begin())) {
			write([]byte{c})
			time.Sleep(time.Duration(p.n) * time.Millisecond)
		}
	},
	"floods":        func(p *peer1) { p.begin(); flood(os.Stdout, p.n<<20, ""); forever() },
	"floods stderr": func(p *peer1) { id := p.begin(); flood(os.Stderr, p.n<<20, "binary"); write([]byte(answer1(id))) },
	"leaves a child": func(p *peer1) {
		id := p.begin()
		(&peer{}).leave(false)
		write([]byte(answer1(id)))
	},
	"leaves a child, hangs": func(p *peer1) { p.begin(); (&peer{}).leave(false); forever() },
	"stops itself":          func(p *peer1) { p.begin(); _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP); forever() },
	"never reads":           func(p *peer1) { forever() },
	"memory bomb":           func(p *peer1) { p.begin(); children["memory"]() },
}

// play1 plays one: its name, its parameter, the plugin's id.
func play1(_ string, args []string) {
	p := &peer1{in: bufio.NewReaderSize(os.Stdin, 1<<16)}
	if len(args) > 2 {
		p.n, _ = strconv.Atoi(args[1])
		p.id = args[2]
	}
	b := behaviours1[args[0]]
	if b == nil {
		fmt.Fprintf(os.Stderr, "there is no behaviour %q\n", args[0])
		os.Exit(99)
	}
	b(p)
	os.Exit(0)
}
