package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func init() {
	add(map[string]behaviour{
		"floods stdout":  func(p *peer) { p.begin(); flood(os.Stdout, p.num(0)<<20, p.arg(1)); forever() },
		"floods stderr":  func(p *peer) { p.begin(); flood(os.Stderr, p.num(0)<<20, p.arg(1)); p.rest("1") },
		"stderr, no end": func(p *peer) { p.begin(); flood(os.Stderr, 1<<50, p.arg(0)) },
		"stderr controls": func(p *peer) {
			p.begin()
			fmt.Fprint(os.Stderr, "\x1b]0;title\x07\x1b[2J\r\n\u202e\x00\xff\n")
			p.rest("1")
		},
		"blank lines": func(p *peer) { p.begin(); flood(os.Stdout, p.num(0)<<20, "\n") },
		"many logs": func(p *peer) {
			p.begin()
			p.many(p.num(0), `{"jsonrpc":"2.0","method":"log","params":{"call":"TOKEN","level":"debug","message":"x"}}`)
			p.rest("1")
		},
		"many progress": func(p *peer) { p.begin(); p.progress(p.num(0)); p.rest("1") },
		"many contents": func(p *peer) {
			p.begin()
			p.many(p.num(0), `{"jsonrpc":"2.0","method":"emit","params":{"call":"TOKEN","seq":1,"kind":"content","data":1}}`)
			p.rest("1")
		},
		"large contents": func(p *peer) {
			p.begin()
			p.many(p.num(0), `{"jsonrpc":"2.0","method":"emit","params":{"call":"TOKEN","seq":1,"kind":"content","data":"`+strings.Repeat("c", p.num(1))+`"}}`)
			p.rest("1")
		},
		"logs, no end": func(p *peer) {
			p.begin()
			p.many(1<<40, `{"jsonrpc":"2.0","method":"log","params":{"level":"debug","message":"x"}}`)
		},
		"progress, no end": func(p *peer) { p.begin(); p.progress(1 << 40) },
		"large logs": func(p *peer) {
			p.begin()
			p.many(p.num(0), `{"jsonrpc":"2.0","method":"log","params":{"call":"TOKEN","level":"debug","message":"`+strings.Repeat("l", p.num(1))+`"}}`)
			p.rest("1")
		},
		"other's events": func(p *peer) {
			p.begin()
			p.call.Params.Call = strings.Repeat("0", 32)
			p.progress(p.num(0))
			p.rest("1")
		},
		"notices, no end": func(p *peer) { p.begin(); p.many(1<<40, `{"jsonrpc":"2.0","method":"$/x"}`) },
		"both pipes full": func(p *peer) {
			p.begin()
			go flood(os.Stderr, 1<<50, p.arg(0))
			p.many(1<<40, `{"jsonrpc":"2.0","method":"$/x","params":{"pad":"`+strings.Repeat("p", 4000)+`"}}`)
		},
		"asks, never reads": func(p *peer) {
			p.begin()
			p.many(p.num(0), `{"jsonrpc":"2.0","id":"`+strings.Repeat("i", max(p.num(1), 1))+`","method":"cache.get","params":{"call":"TOKEN","args":{"key":"a"}}}`)
			forever()
		},
		"hoards": func(p *peer) { // asks for large answers and reads none
			p.begin()
			p.ask("cache.set", `{"key":"hoard","value":"`+strings.Repeat("h", 1000<<10)+`"}`)
			for range p.num(0) {
				p.many(16, `{"jsonrpc":"2.0","id":"i","method":"cache.get","params":{"call":"TOKEN","args":{"key":"hoard"}}}`)
				time.Sleep(20 * time.Millisecond)
			}
			forever()
		},
	})
}

// many writes a line so often, as fast as the pipe takes it.
func (p *peer) many(n int, line string) {
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	text := p.fill(line, p.call.ID) + "\n"
	for range n {
		if _, err := out.WriteString(text); err != nil {
			forever()
		}
	}
	_ = out.Flush()
}

// progress says so often that it is under way.
func (p *peer) progress(n int) {
	p.many(n, `{"jsonrpc":"2.0","method":"emit","params":{"call":"TOKEN","seq":1,"kind":"progress","data":{"done":1}}}`)
}

func (p *peer) log(message string) {
	p.many(1, `{"jsonrpc":"2.0","method":"log","params":{"call":"TOKEN","level":"info","message":"`+message+`"}}`)
}

// flood writes n bytes of a kind: zeros, lines, what is no text, or one long line.
func flood(w io.Writer, n int, kind string) {
	chunk := bytes.Repeat([]byte("x"), 1<<16)
	switch kind {
	case "zeros":
		chunk = make([]byte, 1<<16)
	case "binary":
		for i := range chunk {
			chunk[i] = byte(i*7 + i/256)
		}
	case "lines":
		chunk = bytes.Repeat([]byte("x\n"), 1<<15)
	case "\n":
		chunk = bytes.Repeat([]byte("\n"), 1<<16)
	}
	for ; n > 0; n -= len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			forever()
		}
	}
}
