package mortise_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// A call is a context: what takes one stops when the host gives the call up.
func ExampleCall() {
	type address struct {
		Name string `json:"name"`
	}
	p := mortise.New("dns", "1.0.0")
	mortise.Tool(p, "lookup", "Look up a name.", func(c *mortise.Call, in address) ([]string, error) {
		ctx, cancel := context.WithTimeout(c, 5*time.Second) // or the call's own deadline, where that is earlier
		defer cancel()
		return net.DefaultResolver.LookupHost(ctx, in.Name)
	})
	callOnce(p, "lookup", `{"name":"127.0.0.1"}`)
	// Output: ["127.0.0.1"]
}

// A refusal of the host has a code. Version 1 of the protocol has no services.
func ExampleServiceError() {
	p := mortise.New("notes", "1.0.0")
	mortise.Tool(p, "last", "Show the last note.", func(c *mortise.Call, _ struct{}) (string, error) {
		var note string
		_, err := c.StorageGet("", "last", &note)
		var refused *mortise.ServiceError
		if errors.As(err, &refused) {
			return refused.Code, nil
		}
		return note, err
	})
	callOnce(p, "last", `{}`)
	// Output: "service_denied"
}

// An operator keeps a value for the user whose call it is: the manifest has the
// capability storage and the effect storage_write.
func ExampleCall_StoragePut() {
	type note struct {
		Text string `json:"text"`
	}
	p := mortise.New("notes", "1.0.0")
	mortise.Operator(p, "write", "Keep a note.", func(c *mortise.Call, in note) (replaced bool, err error) {
		var before note
		if replaced, err = c.StorageGet("notes", "last", &before); err != nil {
			return false, err
		}
		return replaced, c.StoragePut("notes", "last", in)
	}, mortise.Effects("storage_write"))
}

// A tool calls the operation of another plugin, which its manifest declares
// under requires.tools.
func ExampleCall_Call() {
	type text struct {
		Text string `json:"text"`
	}
	p := mortise.New("report", "1.0.0")
	mortise.Tool(p, "length", "Say how long a text is.", func(c *mortise.Call, in text) (string, error) {
		var count struct {
			Words int `json:"words"`
		}
		if err := c.Call("words/count", in, &count); err != nil {
			return "", err
		}
		return fmt.Sprintf("It has %d words.", count.Words), nil
	})
}

// The status of an answer is no error. Its Failure says whether to try again.
func ExampleCall_HTTPFetch() {
	type ticket struct {
		Number int `json:"number"`
	}
	p := mortise.New("tickets", "1.0.0")
	mortise.Tool(p, "show", "Show a ticket.", func(c *mortise.Call, in ticket) (string, error) {
		answer, err := c.HTTPFetch(mortise.HTTPRequest{
			URL:     fmt.Sprintf("https://tracker.example.com/tickets/%d", in.Number),
			Secrets: map[string]mortise.Secret{"Authorization": {Name: "api_key", Format: "Bearer {}"}},
			Retries: 2,
		})
		if err != nil {
			return "", err
		}
		if f := answer.Failure; f != nil {
			return "", &mortise.Error{Code: f.Category, Message: fmt.Sprintf("ticket %d: status %d", in.Number, answer.StatusCode), Retryable: f.Retryable}
		}
		return string(answer.JSON), nil
	})
}

// A tool answers a question out of a knowledge base, with a model.
func ExampleCall_LLMQueryText() {
	type question struct {
		Text string `json:"text"`
	}
	p := mortise.New("answers", "1.0.0")
	p.Capabilities = []string{"kb", "llm"}
	mortise.Tool(p, "answer", "Answer a question.", func(c *mortise.Call, in question) (string, error) {
		hits, err := c.KBSearchChunks(mortise.KBQuery{Query: in.Text, Limit: 5})
		if err != nil {
			return "", err
		}
		query := mortise.LLMQuery{Prompt: in.Text, Hints: &mortise.LLMHints{Tier: "light"}}
		for _, hit := range hits {
			query.GroundingData = append(query.GroundingData, hit.Content)
		}
		answer, err := c.LLMQueryText(query)
		if err != nil {
			return "", err
		}
		if !answer.OK {
			return "", mortise.Errorf("NO_ANSWER", "%s", answer.Error)
		}
		return answer.Text, nil
	})
}

// A veto sees the arguments of a tool before it runs.
func ExampleVeto() {
	p := mortise.New("no_shell", "1.0.0")
	mortise.Veto(p, "tool.before@v1", func(_ *mortise.Call, payload mortise.Payload) (mortise.Verdict, error) {
		var use mortise.ToolBeforeV1
		err := payload.Decode(&use)
		return mortise.Verdict{Allow: use.ToolName != "shell", Reason: "there is no shell here"}, err
	}, mortise.FailureMode("fail"))
}
