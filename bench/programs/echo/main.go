// Command echo is a Go plugin whose one operation answers its input.
//
// With -name NAME it is the plugin of that name. With -cpuprofile FILE it writes a profile of its life up to a call of the
// operation profiled.
package main

import (
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/go-json-experiment/json/jsontext"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

func main() {
	name := "bench.echo"
	if len(os.Args) == 3 && os.Args[1] == "-name" {
		name = os.Args[2]
	}
	p := mortise.New(name, "1.0.0")
	p.Concurrency = 256
	mortise.Tool(p, "echo", "Answer the input.", func(_ *mortise.Call, in jsontext.Value) (jsontext.Value, error) { return in, nil })
	if len(os.Args) == 3 && os.Args[1] == "-cpuprofile" {
		if err := profile(p, os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	p.Run()
}

func profile(p *mortise.Plugin, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	mortise.Tool(p, "profiled", "Write the profile.", func(*mortise.Call, jsontext.Value) (bool, error) {
		pprof.StopCPUProfile()
		return true, f.Close()
	})
	return pprof.StartCPUProfile(f)
}
