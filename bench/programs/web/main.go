// Command web is a Go plugin whose operations answer their input: a tool, and an operator.
// Their schemas are in the manifest that bench writes.
package main

import (
	"github.com/go-json-experiment/json/jsontext"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

func main() {
	p := mortise.New("web_go", "1.0.0")
	p.Concurrency = 256
	same := func(_ *mortise.Call, in jsontext.Value) (jsontext.Value, error) { return in, nil }
	mortise.Tool(p, "echo", "Answer the input.", same)
	mortise.Operator(p, "apply", "Answer the input.", same, mortise.Effects("db_write"))
	p.Run()
}
