package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

func init() {
	add(map[string]behaviour{
		// What an opening may not say.
		"opens/error": func(p *peer) {
			p.opens(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"not today"}}` + "\n")
		},
		"opens/other version": func(p *peer) { p.swaps(`"2"`, `"1"`, `"3"`, `"2.0"`, `""`, `" 2"`, `"rterm.plugin.v1"`) },
		"opens/other plugin":  func(p *peer) { p.swaps("NAME", "good", "Hostile.go", "hostile.go ", "", "hostile") },
		"opens/other release": func(p *peer) { p.swaps("1.0.0", "1.0.1", "v1.0.0", "1.0.0-beta", "", "1") },
		"opens/no plugins":    func(p *peer) { p.swaps(`[{"name":"NAME","version":"1.0.0"}]`, "[]", "[{}]", "null") },
		"opens/concurrency":   func(p *peer) { p.swaps(":8", ":0", ":-1", ":1000000", ":1e99", ":1.5", `:"8"`) },
		"opens/shape": func(p *peer) {
			p.opens(`{"jsonrpc":"2.0","id":ID,"result":` + pick(p.num(0), "1", "[]", `"2"`, "true", `{"protocol":2}`, `{"plugins":{}}`) + "}\n")
		},
		"opens/many plugins": func(p *peer) {
			p.opens(strings.Replace(truth, "[{", "["+strings.Repeat(`{"name":"x","version":"1"},`, p.num(0))+"{", 1))
		},
		"opens/unknown features": func(p *peer) {
			write([]byte(p.fill(strings.Replace(truth, `"concurrency"`, `"features":["time travel"],"later":{"a":[1]},"concurrency"`, 1), p.opening)))
			p.serve()
		},

		// When it comes, and what else comes.
		"opens/late":     func(p *peer) { time.Sleep(p.ms(0)); p.open(); p.serve() },
		"opens/never":    func(*peer) { forever() },
		"opens/busy":     func(*peer) { spin() },
		"opens/exits":    func(p *peer) { os.Exit(p.num(0)) },
		"opens/twice":    func(p *peer) { p.open(); time.Sleep(p.ms(0)); p.open(); p.serve() },
		"opens/in drops": func(p *peer) { p.drops(p.fill(truth, p.opening), p.ms(0)); p.serve() },
		"opens/half": func(p *peer) {
			text := p.fill(truth, p.opening)
			write([]byte(text[:min(p.num(0), len(text)-1)]))
			forever()
		},
		"opens/half and exits": func(p *peer) {
			text := p.fill(truth, p.opening)
			write([]byte(text[:min(p.num(0), len(text)-2)]))
			os.Exit(0)
		},
		"opens/stdout closed": func(*peer) { os.Stdout.Close(); forever() },
		"opens/talks first": func(p *peer) {
			for range max(p.num(0), 1) {
				write([]byte(`{"jsonrpc":"2.0","method":"log","params":{"level":"info","message":"here I am"}}` + "\n"))
			}
			p.open()
			p.serve()
		},
		"opens/asks first": func(p *peer) {
			write([]byte(`{"jsonrpc":"2.0","id":"a","method":"cache.get","params":{"call":"none","args":{"key":"a"}}}` + "\n"))
			p.hear()
			p.open()
			p.serve()
		},
		"opens/and exits":        func(p *peer) { p.open(); time.Sleep(p.ms(0)); os.Exit(0) },
		"opens/and never reads":  func(p *peer) { p.open(); forever() },
		"opens/and closes stdin": func(p *peer) { p.open(); os.Stdin.Close(); forever() },
		"opens/floods":           func(p *peer) { flood(os.Stdout, p.num(0)<<20, ""); forever() },
	})
}

// opens says this in place of an opening.
func (p *peer) opens(line string) { write([]byte(p.fill(line, p.opening))); p.serve() }

// swaps opens with one part replaced.
func (p *peer) swaps(old string, with ...string) {
	p.opens(strings.Replace(truth, old, with[p.num(0)%len(with)], 1))
}

func pick(n int, texts ...string) string { return texts[n%len(texts)] }

// drops writes a text byte by byte.
func (p *peer) drops(text string, pause time.Duration) {
	for _, c := range []byte(text) {
		write([]byte{c})
		time.Sleep(pause)
	}
}

// spin works on nothing for good.
func spin() {
	for i := 0; ; i++ {
		if i < 0 {
			fmt.Println(i)
		}
	}
}
