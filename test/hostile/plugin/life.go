package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// What ends.
func init() {
	add(map[string]behaviour{
		"exits":            func(p *peer) { p.begin(); os.Exit(p.num(0)) },
		"exits later":      func(p *peer) { p.begin(); time.Sleep(p.ms(0)); os.Exit(0) },
		"exits mid-line":   func(p *peer) { p.begin(); write(p.result("1")[:p.num(0)]); os.Exit(0) },
		"answers, exits":   func(p *peer) { p.begin(); p.answer("1"); os.Exit(p.num(0)) },
		"progress, exits":  func(p *peer) { p.begin(); p.progress(p.num(0)); os.Exit(0) },
		"panics":           func(p *peer) { p.begin(); panic(strings.Repeat("at the disco ", p.num(0)+1)) },
		"is killed":        func(p *peer) { p.begin(); _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); forever() },
		"recursion":        func(p *peer) { debug.SetMaxStack(64 << 20); p.begin(); p.quote("%d", deeper(1)) },
		"deadlock":         func(p *peer) { p.begin(); signal.Reset(); <-make(chan int) },
		"closes stdout":    func(p *peer) { p.begin(); time.Sleep(p.ms(0)); os.Stdout.Close(); forever() },
		"closes stdin":     func(p *peer) { p.begin(); os.Stdin.Close(); time.Sleep(p.ms(0)); p.answer("1"); forever() },
		"closes stderr":    func(p *peer) { p.begin(); os.Stderr.Close(); p.rest("1") },
		"closes all":       func(p *peer) { p.begin(); os.Stdin.Close(); os.Stdout.Close(); os.Stderr.Close(); forever() },
		"becomes another":  func(p *peer) { p.begin(); p.quote("%s", denied(become("sleep"))) },
		"becomes a parrot": func(p *peer) { p.begin(); p.quote("%s", denied(become("repeat"))) },
	})
}

// What does not end.
func init() {
	add(map[string]behaviour{
		"hangs": func(p *peer) { p.begin(); forever() },
		"busy":  func(p *peer) { p.begin(); busy(p.num(0)) },
		"stops itself": func(p *peer) {
			p.begin()
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			time.Sleep(100 * time.Millisecond)
			p.rest("1")
		},
		"stops its group": func(p *peer) {
			p.begin()
			_ = syscall.Kill(0, syscall.SIGSTOP)
			time.Sleep(100 * time.Millisecond)
			p.rest("1")
		},
		"ignores signals": func(p *peer) {
			signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
			p.begin()
			p.answer("1")
			forever()
		},
		"ignores signals, hangs": func(p *peer) { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT); p.begin(); forever() },
		"reads on, hangs": func(p *peer) {
			p.begin()
			for {
				p.hear()
			}
		},
		"garbage collects": func(p *peer) {
			p.begin()
			for {
				runtime.GC()
			}
		},
		"wakes up often": func(p *peer) {
			p.begin()
			for {
				time.Sleep(10 * time.Microsecond)
			}
		},
	})
}

// What answers at another time than it should, or more often.
func init() {
	add(map[string]behaviour{
		"answers late":       func(p *peer) { p.begin(); time.Sleep(p.ms(0)); p.answer("1"); p.serve() },
		"answers late twice": func(p *peer) { p.begin(); time.Sleep(p.ms(0)); p.answer("1"); p.answer("2"); p.serve() },
		"answers twice":      func(p *peer) { p.begin(); p.answer("1"); time.Sleep(p.ms(0)); p.answer("2"); p.serve() },
		"answers early":      func(p *peer) { p.open(); p.call.ID = []byte("2"); time.Sleep(p.ms(0)); p.answer("1"); p.serve() },
		"answers often": func(p *peer) {
			p.begin()
			p.answer("1")
			for range p.num(0) {
				p.answer("2")
			}
			p.serve()
		},
		"speaks on": func(p *peer) {
			p.begin()
			p.answer("1")
			for {
				p.progress(1)
				time.Sleep(time.Millisecond)
			}
		},
		"logs on": func(p *peer) {
			p.begin()
			p.answer("1")
			for {
				p.log("still here")
				time.Sleep(time.Millisecond)
			}
		},
		"errors on": func(p *peer) {
			p.begin()
			p.answer("1")
			for {
				fmt.Fprintln(os.Stderr, "still here")
				time.Sleep(time.Millisecond)
			}
		},
		"falls silent":     func(p *peer) { p.begin(); p.answer("1"); p.await(); forever() },
		"then noise":       func(p *peer) { p.begin(); p.answer("1"); p.await(); write([]byte("noise\n")); forever() },
		"then exits":       func(p *peer) { p.begin(); p.answer("1"); p.await(); os.Exit(p.num(0)) },
		"exits in between": func(p *peer) { p.begin(); p.answer("1"); time.Sleep(p.ms(0)); os.Exit(0) },
		"in drops":         func(p *peer) { p.begin(); p.drops(string(p.result("1")), p.ms(0)); p.serve() },
	})
}

// What gives an answer that is odd or wrong.
func init() {
	add(map[string]behaviour{
		"says no": func(p *peer) { p.begin(); p.say(pick(p.num(0), refusals...) + "\n"); p.serve() },
		"wrong result": func(p *peer) {
			p.begin()
			p.say(`{"jsonrpc":"2.0","id":ID,"result":` + pick(p.num(0), results...) + "}\n")
			p.serve()
		},
		"wrong data": func(p *peer) {
			p.begin()
			p.rest(pick(p.num(0), `"text"`, "{}", "[1]", "null", "1.5", "true", `{"a":1}`))
		},
		"in progress": func(p *peer) {
			p.begin()
			p.say(`{"jsonrpc":"2.0","id":ID,"result":{"status":"in_progress"}}` + "\n")
			p.serve()
		},
		"large":      func(p *peer) { p.begin(); p.rest(`"` + strings.Repeat("z", p.num(0)) + `"`) },
		"many parts": func(p *peer) { p.begin(); p.rest("[" + strings.Repeat("1,", p.num(0)) + "1]") },
		"long number": func(p *peer) {
			p.begin()
			p.rest(pick(p.num(1), "", "-", "0.") + strings.Repeat("7", p.num(0)) + pick(p.num(1), "", "", "", "e400"))
		},
		"unknown notice": func(p *peer) {
			p.begin()
			for range p.num(0) {
				write([]byte(`{"jsonrpc":"2.0","method":"$/later","params":[1]}` + "\n"))
			}
			p.rest("1")
		},
		"crlf": func(p *peer) {
			p.begin()
			write([]byte(strings.TrimSuffix(string(p.result("1")), "\n") + "\r\n"))
			p.serve()
		},
		"padded": func(p *peer) {
			p.begin()
			write([]byte(strings.Repeat(" ", p.num(0)) + string(p.result("1"))))
			p.serve()
		},
		"no newline, exits": func(p *peer) { p.begin(); write([]byte(strings.TrimSpace(string(p.result("1"))))); os.Exit(0) },
		"no newline, hangs": func(p *peer) { p.begin(); write([]byte(strings.TrimSpace(string(p.result("1"))))); forever() },
	})
}

// What leaves others behind. The parameter says how they are held.
func init() {
	add(map[string]behaviour{
		"leaves a child":           func(p *peer) { p.begin(); p.leave(false); p.rest("1") },
		"leaves a child, exits":    func(p *peer) { p.begin(); p.leave(false); os.Exit(0) },
		"answers, leaves a child":  func(p *peer) { p.begin(); p.leave(false); p.answer("1"); os.Exit(0) },
		"leaves a child, hangs":    func(p *peer) { p.begin(); p.leave(false); forever() },
		"leaves a daemon":          func(p *peer) { p.begin(); p.leave(true); p.rest("1") },
		"leaves a daemon, exits":   func(p *peer) { p.begin(); p.leave(true); os.Exit(0) },
		"answers, leaves a daemon": func(p *peer) { p.begin(); p.leave(true); p.answer("1"); os.Exit(0) },
		"leaves a daemon, hangs":   func(p *peer) { p.begin(); p.leave(true); forever() },
		"a child speaks": func(p *peer) {
			p.begin()
			start("speak")
			time.Sleep(500 * time.Millisecond)
			p.rest("1")
		},
		"a child answers": func(p *peer) { p.begin(); start("read"); p.rest("1") },
		"a child reads":   func(p *peer) { p.begin(); start("read"); forever() },
	})
}

// refusals are errors as a plugin may report them.
var refusals = []string{
	`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no"}}`,
	`{"jsonrpc":"2.0","id":ID,"error":{"code":7,"message":"no"}}`,
	`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"\u001b[31mred\u0007","data":{"code":"internal"}}}`,
	`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"","data":{"code":"policy_denied","plugin_code":"` + strings.Repeat("C", 5000) + `"}}}`,
	`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"` + strings.Repeat("m", 1<<20) + `"}}`,
	`{"jsonrpc":"2.0","id":ID,"result":{"status":"failed","error":{"code":"outcome_unknown","message":"who knows"}}}`,
	`{"jsonrpc":"2.0","id":ID,"result":{"status":"failed","error":{}}}`,
	`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no","data":{"code":"crashed","retryable":true,"retry_after_ms":9223372036854775807}}}`,
	`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no","data":{"code":"NOPE","details":{"a":"` + strings.Repeat("d", 1<<20) + `"}}}}`,
}

// results are none.
var results = []string{
	"1", "[]", "null", `"ok"`, "true", "{}", `{"data":1}`, `{"status":"ok","data":1}`, `{"status":1}`, `{"status":"pending_approval"}`, `{"status":"unknown"}`,
	`{"status":"failed"}`, `{"status":"failed","error":"no"}`, `{"status":"succeeded","error":{"code":"a","message":"b"}}`,
	`{"status":"succeeded","data":1,"metrics":7}`, `{"status":"succeeded","data":1,"artifacts":{}}`, `{"status":"succeeded","data":1,"summary":[]}`,
	`{"status":"succeeded","data":1,"nondeterminism":"yes"}`, `{"status":"failed","error":{"code":7}}`,
}

func deeper(n int) int {
	var room [256]int
	if n < 0 {
		return 0
	}
	room[n%256] = deeper(n + 1)
	return room[(n+1)%256] + 1
}

// busy keeps n processors busy.
func busy(n int) {
	runtime.GOMAXPROCS(max(n, 1))
	for range n - 1 {
		go spin()
	}
	spin()
}

// denied names an error as the system does, "" for none.
func denied(err error) string {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
