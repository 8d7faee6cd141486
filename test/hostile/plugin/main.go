// Command plugin is a hostile plugin: one program that misbehaves in every way
// in which a program that speaks over pipes can. It uses no SDK, since an SDK
// would keep it from most of them.
//
// The host tells a process whose session it serves, and the session's name says
// what the process is to do: "17~exits|9" is the behaviour exits with the
// parameter 9. Started with arguments it speaks protocol 1 and takes the name
// from them; with "child" it is one of its own children; started with "list" it prints the names of its behaviours.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A behaviour is what a plugin of protocol 2 does once it has read the host's
// first line.
type behaviour func(p *peer)

// behaviours are all there are.
var behaviours = map[string]behaviour{"good": func(p *peer) { p.open(); p.serve() }}

// add puts behaviours into the table.
func add(more map[string]behaviour) {
	for name, b := range more {
		if behaviours[name] != nil {
			panic("there are two of " + name)
		}
		behaviours[name] = b
	}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "list" {
		names := slices.Collect(maps.Keys(behaviours))
		for name := range behaviours1 {
			names = append(names, "v1/"+name)
		}
		slices.Sort(names)
		fmt.Println(strings.Join(names, "\n"))
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "child" {
		children[os.Args[2]]()
		return
	}
	if len(os.Args) > 1 {
		play1(os.Args[1], os.Args[2:])
		return
	}
	p := &peer{in: bufio.NewReaderSize(os.Stdin, 1<<16)}
	first := p.hear()
	p.opening = first.ID
	_, what, _ := strings.Cut(first.Params.Scope.ID, "~")
	name, args, _ := strings.Cut(what, "|")
	p.name = "hostile.go"
	if filepath.Base(os.Args[0]) == "good" {
		name, p.name = "good", "good"
	}
	if first.Params.Scope.Kind == "call" { // its code is asked what it does
		name = "good"
	}
	if args != "" {
		p.args = strings.Split(args, "|")
	}
	b := behaviours[name]
	if b == nil {
		fmt.Fprintf(os.Stderr, "there is no behaviour %q\n", name)
		os.Exit(99)
	}
	b(p)
}

// A message is one line of the host, as far as anyone here looks at it.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Call  string `json:"call"`
		Scope struct {
			Kind string `json:"kind"`
			ID   string `json:"id"`
		} `json:"scope"`
		Paths struct {
			Scratch string `json:"scratch"`
		} `json:"paths"`
		Input json.RawMessage `json:"input"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Data struct {
			Code string `json:"code"`
		} `json:"data"`
	} `json:"error"`
}

// A peer is the plugin's end of the pipes.
type peer struct {
	in      *bufio.Reader
	name    string
	args    []string
	opening json.RawMessage // the id of initialize
	call    message         // the last execute
}

// arg returns a parameter, "" where there is none.
func (p *peer) arg(i int) string {
	if i < len(p.args) {
		return p.args[i]
	}
	return ""
}

// num returns a parameter as a number, 0 where there is none.
func (p *peer) num(i int) int {
	n, _ := strconv.Atoi(p.arg(i))
	return n
}

// ms returns a parameter as milliseconds.
func (p *peer) ms(i int) time.Duration { return time.Duration(p.num(i)) * time.Millisecond }

// hear reads one line; at the end of the input the process ends.
func (p *peer) hear() message {
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		os.Exit(0)
	}
	var m message
	_ = json.Unmarshal(line, &m)
	return m
}

// await reads until it is asked to execute something.
func (p *peer) await() {
	for {
		m := p.hear()
		switch m.Method {
		case "execute":
			p.call = m
			return
		case "describe":
			write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", m.ID))
		case "shutdown":
			write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID))
		}
	}
}

// truth is an honest opening.
const truth = `{"jsonrpc":"2.0","id":ID,"result":{"protocol":"2","plugins":[{"name":"NAME","version":"1.0.0"}],"concurrency":8}}` + "\n"

// fill puts in ids and the call's token.
func (p *peer) fill(text string, id json.RawMessage) string {
	return strings.NewReplacer("NAME", p.name, "ID", string(id), "TOKEN", p.call.Params.Call).Replace(text)
}

// open shakes hands.
func (p *peer) open() { write([]byte(p.fill(truth, p.opening))) }

// begin shakes hands and waits for the first call.
func (p *peer) begin() {
	p.open()
	p.await()
}

// result is an answer with data, which is JSON.
func (p *peer) result(data string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"status":"succeeded","data":%s}}`+"\n", p.call.ID, data)
}

// answer answers the call as it should be answered.
func (p *peer) answer(data string) { write(p.result(data)) }

// quote answers with a text.
func (p *peer) quote(format string, args ...any) {
	text, _ := json.Marshal(fmt.Sprintf(format, args...))
	p.answer(string(text))
}

// serve answers every further call as it should be answered.
func (p *peer) serve() {
	for {
		p.await()
		p.answer("1")
	}
}

// rest answers the call and goes on as a good plugin would.
func (p *peer) rest(data string) {
	p.answer(data)
	p.serve()
}

// write writes exactly this to standard output.
func write(b []byte) { _, _ = os.Stdout.Write(b) }

func forever() { time.Sleep(time.Hour) }
