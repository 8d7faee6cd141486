package bundle

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/evanw/esbuild/pkg/api"
)

// A program that links this package is the worker when it is started as one:
// the host, and any test of it.
func init() {
	if len(os.Args) == 2 && os.Args[1] == Arg {
		os.Exit(work(os.Stdin, os.Stdout))
	}
}

// work makes one bundle and returns the exit status.
func work(in io.Reader, out io.Writer) int {
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(maxMemory / 2)
	limitAddresses()
	time.AfterFunc(maxTime+time.Second, func() { os.Exit(4) }) // the host was stopped meanwhile
	go watch()
	from := bufio.NewReader(in)
	request, err := from.ReadBytes('\n')
	if err != nil {
		return 2
	}
	go func() { // the end of standard input: the host is gone
		_, _ = from.ReadByte()
		os.Exit(5)
	}()
	var job Job
	if err := json.Unmarshal(request, &job); err != nil {
		fmt.Fprintln(os.Stderr, "the request cannot be read:", err)
		return 2
	}
	rules, err := newRules(job)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	job.Options.Plugins = []api.Plugin{{Name: "mortise", Setup: rules.setUp}}
	job.Options.LogLevel = api.LogLevelSilent
	result := api.Build(job.Options)
	if len(result.Errors) > 0 {
		result.OutputFiles = nil
	}
	if err := json.NewEncoder(out).Encode(result); err != nil {
		return 2
	}
	return 0
}

// watch ends the process once it takes too much memory.
func watch() {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for {
		metrics.Read(samples)
		if samples[0].Value.Uint64()-samples[1].Value.Uint64() > maxMemory {
			fmt.Fprintln(os.Stderr, "too much memory")
			os.Exit(3)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
