package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// Services that are not its own to use. It answers with the codes it got.
func init() {
	add(map[string]behaviour{
		"asks with no token":     func(p *peer) { p.begin(); p.refused("cache.get", "", `{"key":"a"}`) },
		"asks with a made token": func(p *peer) { p.begin(); p.refused("cache.get", strings.Repeat("0", 32), `{"key":"a"}`) },
		"asks with a cut token":  func(p *peer) { p.begin(); p.refused("cache.get", p.call.Params.Call[:31-p.num(0)], `{"key":"a"}`) },
		"asks with a long token": func(p *peer) {
			p.begin()
			p.refused("cache.get", p.call.Params.Call+strings.Repeat("0", p.num(0)+1), `{"key":"a"}`)
		},
		"asks with upper case": func(p *peer) {
			p.begin()
			p.refused("cache.get", strings.ToUpper(p.call.Params.Call)+" ", `{"key":"a"}`)
		},
		"asks for what is not": func(p *peer) {
			p.begin()
			p.refused(pick(p.num(0), "secrets.get", "cache.drop", "shell.run", "a.b.c", ".", "cache.", ".get", "CACHE.GET"), p.call.Params.Call, `{"key":"a"}`)
		},
		"asks for what it lacks": func(p *peer) {
			p.begin()
			p.refused("http.fetch", p.call.Params.Call, `{"method":"GET","url":"http://127.0.0.1/"}`)
		},
		"asks with wrong args": func(p *peer) {
			p.begin()
			p.refused("cache.get", p.call.Params.Call, pick(p.num(0), "{}", "1", "[]", "null", `{"key":1}`, `{"key":""}`, `{"key":"`+strings.Repeat("k", 600)+`"}`, `{"key":"a","x":1}`))
		},
		"asks for no method": func(p *peer) {
			p.begin()
			p.refused(pick(p.num(0), "nodot", "execute", "initialize", "$/cancel", "shutdown"), p.call.Params.Call, "{}")
		},
		"asks with a long name": func(p *peer) { p.begin(); p.refused("a."+strings.Repeat("b", p.num(0)), p.call.Params.Call, "{}") },
		"asks for an operation": func(p *peer) {
			p.begin()
			p.refused("operations.call", p.call.Params.Call, `{"operation":"missing/nothing"}`)
		},
		"asks after the answer": func(p *peer) {
			p.begin()
			old := p.call.Params.Call
			p.answer("1")
			p.await()
			p.refused("cache.get", old, `{"key":"a"}`)
		},
		"asks after its time": func(p *peer) {
			p.begin()
			time.Sleep(p.ms(0))
			m := p.request("cache.get", p.call.Params.Call, `{"key":"a"}`)
			if m.Error == nil || m.Error.Data.Code != "service_denied" {
				os.Exit(98)
			}
			p.answer("1")
			p.serve()
		},
		"asks itself": func(p *peer) {
			p.begin()
			p.refusedOnce("operations.call", p.call.Params.Call, `{"operation":"hostile.go/run","input":{}}`)
			p.rest("1")
		},
	})
}

// Services that the plugin may use, used as no ordinary plugin does.
func init() {
	add(map[string]behaviour{
		"asks often": func(p *peer) {
			p.begin()
			for range p.num(0) {
				p.ask("cache.get", `{"key":"a"}`)
			}
			p.rest("1")
		},
		"asks much at once": func(p *peer) {
			p.begin()
			go p.many(p.num(0), `{"jsonrpc":"2.0","id":"i","method":"cache.get","params":{"call":"TOKEN","args":{"key":"a"}}}`)
			for range p.num(0) {
				p.hear()
			}
			p.rest("1")
		},
		"asks and does not wait": func(p *peer) {
			p.begin()
			p.many(p.num(0), `{"jsonrpc":"2.0","id":"i","method":"cache.get","params":{"call":"TOKEN","args":{"key":"a"}}}`)
			p.rest("1")
		},
		"asks with odd ids": func(p *peer) {
			p.begin()
			p.many(1, `{"jsonrpc":"2.0","id":`+pick(p.num(0), `""`, "-1", "0", "9223372036854775807", `"\u0000"`, `"`+strings.Repeat("i", 64)+`"`)+`,"method":"cache.get","params":{"call":"TOKEN","args":{"key":"a"}}}`)
			p.hear()
			p.rest("1")
		},
		"asks with bad ids": func(p *peer) {
			p.begin()
			p.many(1, `{"jsonrpc":"2.0","id":`+pick(p.num(0), "null", "1.5", "[]", "{}", "true", `"`+strings.Repeat("i", 10_000)+`"`)+`,"method":"cache.get","params":{"call":"TOKEN","args":{"key":"a"}}}`)
			forever()
		},
		"fills the cache": func(p *peer) {
			p.begin()
			for n := range p.num(0) {
				p.ask("cache.set", fmt.Sprintf(`{"key":"%d","value":"%s"}`, n, strings.Repeat("v", 500<<10)))
			}
			p.rest("1")
		},
		"keeps too much": func(p *peer) {
			p.begin()
			p.refused("cache.set", p.call.Params.Call, `{"key":"a","value":"`+strings.Repeat("v", 1<<20+p.num(0))+`"}`)
		},
	})
}

// request asks for a service and returns the answer.
func (p *peer) request(method, token, args string) message {
	name, _ := json.Marshal(method)
	write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"r","method":%s,"params":{"call":%q,"args":%s}}`+"\n", name, token, args))
	for {
		if m := p.hear(); string(m.ID) == `"r"` {
			return m
		}
	}
}

// ask asks for a service that this call may use.
func (p *peer) ask(method, args string) {
	if m := p.request(method, p.call.Params.Call, args); m.Error != nil {
		fmt.Fprintf(os.Stderr, "%s was refused: %s\n", method, m.Error.Data.Code)
		os.Exit(97)
	}
}

// refusedOnce asks for what must be refused; if it is not, the call fails.
func (p *peer) refusedOnce(method, token, args string) {
	if m := p.request(method, token, args); m.Error == nil {
		fmt.Fprintf(os.Stderr, "%s was not refused\n", method)
		os.Exit(98)
	}
}

// refused answers the call if it is refused, and fails it if not.
func (p *peer) refused(method, token, args string) {
	p.refusedOnce(method, token, args)
	p.rest("1")
}
