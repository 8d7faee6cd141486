package mortise_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// callOnce calls one operation of a plugin as a host of protocol 1 does, and prints what
// the plugin answers: its output, or its error.
func callOnce(p *mortise.Plugin, operation, input string) {
	conversation := fmt.Sprintf("{\"type\":\"handshake\",\"protocol_version\":\"1\"}\n"+
		"{\"type\":\"request\",\"request_id\":\"r\",\"tool_name\":%q,\"input\":%s,\"context\":{}}\n", operation, input)
	var out bytes.Buffer
	if err := p.Serve(strings.NewReader(conversation), &out); err != nil {
		fmt.Println(err)
		return
	}
	var answer struct {
		Output json.RawMessage
		Error  *struct{ Code, Message string }
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &answer); err != nil {
		fmt.Println(err)
		return
	}
	if answer.Error != nil {
		fmt.Printf("%s: %s\n", answer.Error.Code, answer.Error.Message)
		return
	}
	fmt.Println(string(answer.Output))
}

// A tool is a function: its types are the schema of its input and output.
func ExampleTool() {
	type text struct {
		Text string `json:"text" doc:"what is counted"`
	}
	type count struct {
		Words int `json:"words"`
	}
	p := mortise.New("words", "1.0.0")
	mortise.Tool(p, "count", "Count words.", func(_ *mortise.Call, in text) (count, error) {
		return count{len(strings.Fields(in.Text))}, nil
	})
	callOnce(p, "count", `{"text":"to be or not to be"}`)
	// Output: {"words":6}
}

// A field that may be left out has omitempty, omitzero or a pointer type.
func ExampleTool_optional() {
	type greeting struct {
		Name string `json:"name"`
		From string `json:"from,omitempty"`
	}
	p := mortise.New("greet", "1.0.0")
	mortise.Tool(p, "hello", "Greet.", func(_ *mortise.Call, in greeting) (string, error) {
		if in.From == "" {
			return "Hello, " + in.Name, nil
		}
		return "Hello, " + in.Name + ", says " + in.From, nil
	})
	callOnce(p, "hello", `{"name":"Ada"}`)
	callOnce(p, "hello", `{"name":"Ada","from":"Bob"}`)
	// Output:
	// "Hello, Ada"
	// "Hello, Ada, says Bob"
}

// A duration is written as text.
func ExampleTool_duration() {
	type window struct {
		Last time.Duration `json:"last"`
	}
	p := mortise.New("clock", "1.0.0")
	mortise.Tool(p, "half", "Halve a time.", func(_ *mortise.Call, in window) (window, error) {
		return window{in.Last / 2}, nil
	})
	callOnce(p, "half", `{"last":"3m"}`)
	// Output: {"last":"1m30s"}
}

// An operator declares its effects: policy and approvals go by them.
func ExampleOperator() {
	type mail struct {
		To string `json:"to"`
	}
	type sent struct {
		ID string `json:"id"`
	}
	p := mortise.New("mail", "1.0.0")
	mortise.Operator(p, "send", "Send a mail.", func(_ *mortise.Call, in mail) (sent, error) {
		return sent{"to-" + in.To}, nil
	}, mortise.Effects("mail_send"), mortise.Permissions("mail:send"), mortise.Timeout("fast"))
	callOnce(p, "send", `{"to":"ann"}`)
	// Output: {"id":"to-ann"}
}

// A preview says what a call would do, without doing it. The approver is shown it.
func ExampleWithPreview() {
	type mail struct {
		To string `json:"to"`
	}
	send := func(_ *mortise.Call, in mail) (string, error) { return "sent to " + in.To, nil }
	preview := func(_ *mortise.Call, in mail) (string, error) { return "would be sent to " + in.To, nil }
	p := mortise.New("mail", "1.0.0")
	mortise.Operator(p, "send", "Send a mail.", send, mortise.Effects("mail_send"), mortise.WithPreview(preview))
	callOnce(p, "send", `{"to":"ann"}`)
	// Output: "sent to ann"
}

// Where a host died in the middle of a call, it asks what became of it.
func ExampleWithReconcile() {
	type mail struct {
		To string `json:"to"`
	}
	send := func(_ *mortise.Call, in mail) (string, error) { return "sent to " + in.To, nil }
	found := func(_ *mortise.Call, in mail, _ []mortise.Effect) (mortise.Reconciled, error) {
		return mortise.Reconciled{Outcome: mortise.Succeeded, Data: "sent to " + in.To, Evidence: "it is in the outbox"}, nil
	}
	p := mortise.New("mail", "1.0.0")
	mortise.Operator(p, "send", "Send a mail.", send, mortise.Effects("mail_send"), mortise.WithReconcile(found))
	callOnce(p, "send", `{"to":"ann"}`)
	// Output: "sent to ann"
}

// An error with a code of its own reaches the caller as it is.
func ExampleErrorf() {
	p := mortise.New("stock", "1.0.0")
	mortise.Tool(p, "price", "Look up a price.", func(_ *mortise.Call, _ struct{}) (string, error) {
		return "", mortise.Errorf("no_such_item", "there is no item %d", 7)
	})
	callOnce(p, "price", `{}`)
	// Output: no_such_item: there is no item 7
}

// A hook rewrites what an event carries, member by member.
func ExamplePayload_With() {
	payload := mortise.Payload(`{"prompt":"be brief","agent":"desk"}`)
	changed, err := payload.With("prompt", "be brief and polite")
	fmt.Println(string(changed), err)
	// Output: {"prompt":"be brief and polite","agent":"desk"} <nil>
}

// A hook reads what it needs of a payload and passes over the rest.
func ExamplePayload_Decode() {
	var said struct {
		Text string `json:"text"`
	}
	err := mortise.Payload(`{"text":"hello","channel":"chat"}`).Decode(&said)
	fmt.Println(said.Text, err)
	// Output: hello <nil>
}
