// Command reference is the plugin that replays the protocol's transcripts: see
// protocol/testdata/README.md.
package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

func main() { New().Run() }

type value struct {
	Value jsontext.Value `json:"value"`
}

// New returns the reference plugin.
func New() *mortise.Plugin {
	p := mortise.New("example.reference", "1.0.0")
	p.Description = "Replays the protocol's transcripts."
	p.Capabilities = []string{"cache"}
	p.Concurrency = 1
	mortise.Tool(p, "echo", "Answer what was sent.", func(_ *mortise.Call, in value) (value, error) { return in, nil })
	mortise.Tool(p, "fail", "Fail with a code of the plugin's own.", func(_ *mortise.Call, in struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}) (value, error) {
		err := mortise.Errorf(in.Code, "%s", in.Message)
		err.Details = map[string]string{"path": "a.log"}
		return value{}, err
	})
	mortise.Tool(p, "raise", "Panic.", func(_ *mortise.Call, in struct {
		Message string `json:"message"`
	}) (value, error) {
		panic(in.Message)
	})
	mortise.Tool(p, "remember", "Store a value and read it back.", func(c *mortise.Call, in struct {
		Key   string         `json:"key"`
		Value jsontext.Value `json:"value"`
	}) (out value, err error) {
		if err := c.CacheSet(in.Key, in.Value, 0); err != nil {
			return out, err
		}
		_, err = c.CacheGet(in.Key, &out.Value)
		return out, err
	})
	mortise.Tool(p, "forbidden", "Ask for a service that was not granted.", func(c *mortise.Call, _ struct{}) (out struct {
		Refused string `json:"refused"`
	}, err error) {
		var refused *mortise.ServiceError
		if errors.As(c.Service("secrets.get", map[string]string{"key": "k"}, nil), &refused) {
			out.Refused = refused.Code
		}
		return out, nil
	})
	mortise.Tool(p, "count", "Count, and say so.", func(c *mortise.Call, in struct {
		To int64 `json:"to"`
	}) (out struct {
		Counted int64 `json:"counted"`
	}, err error) {
		c.Log("info", "counting", map[string]any{"to": in.To})
		for i := range in.To {
			c.Progress(mortise.Progress{Message: "counting", Done: i + 1, Total: in.To})
		}
		c.Emit("done")
		out.Counted = in.To
		return out, nil
	})
	mortise.Tool(p, "stray_print", "Print to standard output.", func(*mortise.Call, struct{}) (out struct {
		Printed bool `json:"printed"`
	}, err error) {
		fmt.Println("this is not a frame")
		out.Printed = true
		return out, nil
	})
	mortise.Tool(p, "wait", "Work until cancelled.", func(c *mortise.Call, _ struct{}) (value, error) {
		c.Progress(mortise.Progress{Message: "waiting"})
		<-c.Done()
		return value{}, c.Err()
	})
	mortise.Operator(p, "send", "Send a mail, or so it says.", send,
		mortise.Effects("mail_send"), mortise.WithPreview(preview), mortise.WithReconcile(reconcile))
	mortise.Veto(p, "tool.before@v1", guard, mortise.Priority(50), mortise.FailureMode("fail"), mortise.Deadline(2*time.Second),
		mortise.Before("example.later"), mortise.After("example.first"))
	mortise.Transform(p, "channel.message.in@v1", askPolitely)
	mortise.Listen(p, "session.opened@v1", func(c *mortise.Call, _ mortise.Payload) error {
		c.Log("info", "opened", map[string]any{"agent": c.Agent, "session": c.About().Session})
		return nil
	})
	return p
}

func guard(c *mortise.Call, p mortise.Payload) (v mortise.Verdict, err error) {
	var use struct {
		ToolName string         `json:"toolName"`
		Args     map[string]any `json:"args"`
	}
	if err := p.Decode(&use); err != nil {
		return v, err
	}
	switch use.ToolName {
	case "shell":
		v.Reason = "no shell here"
		return v, nil
	case "mail/send":
		use.Args["footer"] = true
		v.Payload, err = p.With("args", use.Args)
	case "secrets":
		var refused *mortise.ServiceError
		if errors.As(c.Service("secrets.get", map[string]string{"key": "k"}, nil), &refused) {
			v.Reason = refused.Code
		}
		return v, nil
	case "raise":
		return v, mortise.Errorf("NO_RULES", "it did not look")
	}
	v.Allow = true
	return v, err
}

func askPolitely(_ *mortise.Call, p mortise.Payload) (mortise.Payload, error) {
	var message struct {
		Text string `json:"text"`
	}
	if err := p.Decode(&message); err != nil || strings.HasSuffix(message.Text, "?") {
		return nil, err
	}
	return p.With("text", message.Text+"?")
}

type mail struct {
	To string `json:"to"`
}

type sent struct {
	To      string `json:"to"`
	Attempt int64  `json:"attempt"`
	Verdict string `json:"verdict"`
}

func send(c *mortise.Call, in mail) (sent, error) {
	about := c.About()
	out := sent{To: in.To, Attempt: about.Attempt}
	if about.Policy != nil {
		out.Verdict = string(about.Policy.Verdict)
	}
	return out, nil
}

type shown struct {
	To        string         `json:"to"`
	Signature jsontext.Value `json:"signature"`
}

func preview(c *mortise.Call, in mail) (shown, error) {
	out := shown{To: in.To}
	_, err := c.CacheGet("signature", &out.Signature)
	return out, err
}

func reconcile(c *mortise.Call, in mail, effects []mortise.Effect) (mortise.Reconciled, error) {
	if len(effects) == 0 {
		return mortise.Reconciled{Outcome: mortise.NotDone, Evidence: map[string]int{"effects": 0}}, nil
	}
	for _, e := range effects {
		switch e.State {
		case "intent":
			return mortise.Reconciled{Outcome: mortise.Unknown}, nil
		case "late":
			err := mortise.Errorf("BOUNCED", "%s does not exist", in.To)
			err.Details = mail{in.To}
			return mortise.Reconciled{Outcome: mortise.Failed, Err: err}, nil
		}
	}
	out, err := send(c, in)
	return mortise.Reconciled{
		Outcome: mortise.Succeeded, Data: out,
		Evidence: map[string]any{"effects": len(effects), "answer": effects[0].Response},
	}, err
}
