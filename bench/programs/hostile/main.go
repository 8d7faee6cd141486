// Command hostile is a Go plugin whose operation does what its name says until it is ended or a second is over: -name
// bench.burn, bench.flood, bench.hoard or bench.crash. The last two answer the first call of a process as they should:
// a plugin that fails each time is soon not started any more.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// harms are what it may do.
var harms = map[string]func(*mortise.Call){
	"bench.burn":  burn,
	"bench.flood": flood,
	"bench.hoard": hoard,
	"bench.crash": crash,
}

func main() {
	name := os.Args[2]
	p := mortise.New(name, "1.0.0")
	calls := 0 // one at a time
	mortise.Tool(p, "echo", "Do harm.", func(c *mortise.Call, in jsontext.Value) (jsontext.Value, error) {
		if calls++; calls > 1 || name == "bench.burn" || name == "bench.flood" {
			harms[name](c)
		}
		return in, nil
	})
	p.Run()
}

const second = time.Second

// burn has many more threads than the machine has processors, each of them busy.
func burn(*mortise.Call) {
	end := time.Now().Add(second)
	for range 16 {
		go func() {
			runtime.LockOSThread()
			for time.Now().Before(end) {
			}
		}()
	}
	time.Sleep(second)
}

// flood says as much as it can, on standard error and as progress.
func flood(c *mortise.Call) {
	line := []byte(strings.Repeat(strings.Repeat("x", 99)+"\n", 100))
	for end := time.Now().Add(second); time.Now().Before(end); {
		_, _ = os.Stderr.Write(line)
		for range 100 {
			c.Progress(mortise.Progress{Message: "still here"})
		}
	}
}

// hoard takes memory until it is ended for that.
func hoard(*mortise.Call) {
	var all [][]byte
	for {
		part := make([]byte, 16<<20)
		for i := 0; i < len(part); i += 4096 {
			part[i] = 1
		}
		all = append(all, part)
		if len(all) > 1024 {
			return
		}
	}
}

// crash answers what is no answer, and is gone.
func crash(*mortise.Call) {
	_, _ = syscall.Write(1, []byte("{\"jsonrpc\": nonsense\n"))
	fmt.Fprintln(os.Stderr, "panic: on purpose")
	os.Exit(3)
}
