package mortise_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/protocol"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

type padded struct {
	Bytes int    `json:"bytes"`
	How   string `json:"how"`
}

// oversized is a plugin that makes lines of any length, in every way there is.
func oversized() *mortise.Plugin {
	p := mortise.New("p", "1.0.0")
	pad := func(n int) string { return strings.Repeat("a", n) }
	work := func(c *mortise.Call, in padded) (any, error) {
		switch in.How {
		case "error":
			return nil, &mortise.Error{Code: "OWN", Message: "it failed", Details: map[string]string{"pad": pad(in.Bytes)}}
		case "message":
			return nil, mortise.Errorf("OWN", "%s", pad(in.Bytes))
		case "code":
			return nil, mortise.Errorf(pad(in.Bytes), "it failed")
		case "service":
			return "", c.Service("cache.set", map[string]any{"key": pad(in.Bytes)}, nil)
		case "call":
			return "", c.Call("other/op", pad(in.Bytes), nil)
		case "emit":
			c.Emit(pad(in.Bytes))
			return "", nil
		case "log":
			c.Log("info", pad(in.Bytes), map[string]any{"more": pad(in.Bytes)})
			return "", nil
		case "progress":
			c.Progress(mortise.Progress{Message: pad(in.Bytes)})
			return "", nil
		case "result":
			return mortise.Result[string]{Summary: pad(in.Bytes)}, nil
		case "slow":
			<-c.Done()
			return "", nil
		}
		return pad(in.Bytes), nil
	}
	mortise.Operator(p, "op", "Do it.", work,
		mortise.WithPreview(func(c *mortise.Call, in padded) (string, error) { return pad(in.Bytes), nil }),
		mortise.WithReconcile(func(c *mortise.Call, in padded, _ []mortise.Effect) (mortise.Reconciled, error) {
			return mortise.Reconciled{Outcome: mortise.Succeeded, Data: pad(in.Bytes)}, nil
		}))
	mortise.Transform(p, "prompt.assemble@v1", func(_ *mortise.Call, payload mortise.Payload) (mortise.Payload, error) {
		return payload.With("pad", pad(1<<20))
	})
	return p
}

// A line of more than the host accepts ends that one call with limit_exceeded,
// in whatever way it comes about; the host never sees it, and the calls beside
// it go on.
func TestALineOverTheFrameLimitFailsOneCall(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	for _, how := range []string{"data", "result", "error", "message", "code", "service", "call", "emit", "log", "progress", "preview", "reconcile", "hook"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := talkTo(t, oversized())
			c.ask("initialize", fmt.Sprintf(`{"protocol":"2","host":{"name":"h","version":"1"},"package_digest":"","scope":{"kind":"tenant","id":"t"},"services":[],"limits":{"frame_bytes":%d,"in_flight":4},"paths":{"scratch":"/tmp"}}`, limit))
			c.say(`{"jsonrpc":"2.0","id":1000,"method":"execute","params":{"call":"slow","operation":"p/op","input":{"bytes":0,"how":"slow"},"context":{},"deadline_ms":1000}}`)
			input := fmt.Sprintf(`{"bytes":%d,"how":%q}`, 1<<20, how)
			ask := `{"call":"c","operation":"p/op","input":` + input + `,"context":{},"deadline_ms":1000}`
			method := "execute"
			switch how {
			case "preview":
				method = how
			case "reconcile":
				method, ask = how, `{"call":"c","operation":"p/op","input":`+input+`,"context":{},"deadline_ms":1000,"effects":[]}`
			case "hook":
				method, ask = how, `{"call":"c","event":"prompt.assemble@v1","shape":"transform","payload":{},"agent":"a","deadline_ms":1000}`
			}
			c.say(`{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":` + ask + `}`)
			for {
				line := c.hear()
				if len(line)-1 > limit {
					t.Fatalf("a line of %d bytes: %.200s", len(line), line)
				}
				f, err := protocol.ParseFrame([]byte(line))
				if err != nil {
					t.Fatal(err)
				}
				if string(f.ID) != "7" {
					continue
				}
				code := ""
				if f.Error != nil {
					failure, err := protocol.ParseError(f.Error)
					if err != nil {
						t.Fatal(err)
					}
					code = string(failure.Code)
				}
				wanted := "limit_exceeded"
				switch how {
				case "error", "message", "code":
					wanted = "plugin_error" // its own words, cut
				case "log", "progress":
					wanted = "" // may be cut or dropped, and no reason to fail
				}
				if code != wanted {
					t.Fatalf("got %q: %.300s", code, line)
				}
				break
			}
			c.say(`{"jsonrpc":"2.0","method":"$/cancel","params":{"call":"slow","reason":"cancelled"}}`)
			for {
				line := c.hear()
				if f, err := protocol.ParseFrame([]byte(line)); err != nil || string(f.ID) == "1000" {
					if err != nil || !strings.Contains(line, `""`) && !strings.Contains(line, "cancelled") {
						t.Fatalf("the call beside it: %v %s", err, line)
					}
					break
				}
			}
		})
	}
}

// once is a conversation of version 1 with a plugin in this process.
func once(t *testing.T, p *mortise.Plugin, tool, input string) (r protocol.Response) {
	t.Helper()
	in := `{"type":"handshake","protocol_version":"1"}` + "\n" +
		fmt.Sprintf(`{"type":"request","request_id":"r","tool_name":%q,"input":%s,"context":{}}`, tool, input) + "\n"
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() { done <- p.Serve(strings.NewReader(in), &out) }()
	if err := testwait.Receive(t, "the end of the call", done); err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	if len(lines) != 2 {
		t.Fatalf("%d lines: %.500s", len(lines), out.Bytes())
	}
	if len(lines[1]) > protocol.MaxFrame1 {
		t.Fatalf("the answer has %d bytes", len(lines[1]))
	}
	if err := json.Unmarshal(lines[1], &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// Version 1 has no way to ask the host: each request is refused at once, and
// notifications are dropped.
func TestVersion1RefusesServiceCalls(t *testing.T) {
	t.Parallel()
	asks := map[string]func(c *mortise.Call) error{
		"service": func(c *mortise.Call) error { return c.Service("http.fetch", map[string]any{}, nil) },
		"call":    func(c *mortise.Call) error { return c.Call("other/op", map[string]any{}, nil) },
		"cache": func(c *mortise.Call) error {
			_, err := c.CacheGet("k", new(string))
			return err
		},
		"http": func(c *mortise.Call) error {
			_, err := c.HTTPGet("https://example.com")
			return err
		},
	}
	p := mortise.New("p", "1.0.0")
	mortise.Tool(p, "op", "Do it.", func(c *mortise.Call, in struct {
		Ask string `json:"ask"`
	}) (string, error) {
		c.Log("info", "about to ask", nil)
		c.Progress(mortise.Progress{Message: "asking"})
		c.Emit("content")
		err := asks[in.Ask](c)
		var refused *mortise.ServiceError
		if !errors.As(err, &refused) || refused.Code != "service_denied" {
			t.Errorf("%s: %v", in.Ask, err)
		}
		return "refused", err
	})
	mortise.Tool(p, "panics", "Panic.", func(c *mortise.Call, _ struct{}) (string, error) { panic("at the disco") })
	for ask := range asks {
		if r := once(t, p, "op", `{"ask":"`+ask+`"}`); r.Status != "error" || !strings.Contains(r.Error.Message, "version 1") {
			t.Errorf("%s: %+v %+v", ask, r, r.Error)
		}
	}
	if r := once(t, p, "panics", `{}`); r.Status != "error" || !strings.Contains(r.Error.Message, "at the disco") {
		t.Errorf("%+v %+v", r, r.Error)
	}
}

// An answer above the limit of version 1 is an error of that call.
func TestVersion1AnswersKeepToTheFrameLimit(t *testing.T) {
	t.Parallel()
	for how, wanted := range map[string]string{"data": "limit_exceeded", "error": "OWN", "message": "OWN", "code": ""} {
		r := once(t, oversized(), "op", fmt.Sprintf(`{"bytes":%d,"how":%q}`, 2<<20, how))
		if r.Status != "error" || wanted != "" && r.Error.Code != wanted {
			t.Errorf("%s: %s %+v", how, r.Status, r.Error)
		}
	}
}
