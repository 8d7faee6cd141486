package mortise_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// waiting is a plugin whose operation and hook wait for the end of their context.
func waiting() *mortise.Plugin {
	type ask struct {
		How string `json:"how"`
	}
	how := func(c *mortise.Call, in string) (string, error) {
		began := time.Now()
		deadline, ok := c.Deadline()
		told := func() string {
			return fmt.Sprintf("%v after %v; deadline %v in %v", c.Err(), time.Since(began).Round(10*time.Millisecond), ok, deadline.Sub(began).Round(10*time.Millisecond))
		}
		switch in {
		case "done":
			<-c.Done()
			return told(), nil
		case "derived":
			below, cancel := context.WithTimeout(c, time.Hour)
			defer cancel()
			<-below.Done()
			return fmt.Sprint(below.Err(), "; ", told()), nil
		case "clock": // asks for no channel
			<-time.After(3 * time.Second)
			return told(), nil
		case "service":
			_, err := c.CacheGet("k", nil)
			return fmt.Sprint(err == mortise.ErrTimeout, err == mortise.ErrCancelled), nil
		case "error":
			<-c.Done()
			return "", errors.New("its own")
		default:
			return told(), nil
		}
	}
	p := mortise.New("p", "1.0.0")
	mortise.Tool(p, "op", "Do it.", func(c *mortise.Call, in ask) (string, error) { return how(c, in.How) })
	mortise.Listen(p, "agent.started@v1", func(c *mortise.Call, _ mortise.Payload) error {
		_, err := how(c, "error")
		return err
	})
	return p
}

// A call has the deadline that the host gives it, and is done by it, by the
// host's cancellation, or by its own end.
func TestACallIsAContext(t *testing.T) {
	t.Parallel()
	execute := func(how string, ms int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"execute","params":{"call":"c","operation":"p/op","input":{"how":%q},"context":{},"deadline_ms":%d}}`, how, ms)
	}
	hook := `{"jsonrpc":"2.0","id":1,"method":"hook","params":{"call":"c","event":"agent.started@v1","shape":"listener","payload":{},"agent":"a","deadline_ms":2000}}`
	for _, test := range []struct{ name, say, cancel, want string }{
		{"the host says nothing at the deadline", execute("done", 2000), "", `context deadline exceeded after 3s; deadline true in 2s`},
		{"a derived context", execute("derived", 2000), "", `context deadline exceeded; context deadline exceeded after 3s`},
		{"no channel is asked for", execute("clock", 2000), "", `context deadline exceeded after 3s`},
		{"the deadline is not overdue", execute("clock", 2001), "", `<nil> after 3s`},
		{"the host cancels", execute("done", 2000), "cancelled", `context canceled after 1s`},
		{"the host shuts down", execute("derived", 2000), "shutdown", `context canceled; context canceled after 1s`},
		{"the host says that the time is over", execute("derived", 1000), "timeout", `context deadline exceeded; context deadline exceeded after 1s; deadline true in 1s`},
		{"no deadline", execute("done", 0), "cancelled", `context canceled after 1s; deadline false`},
		{"in time", execute("now", 2000), "", `<nil> after 0s; deadline true in 2s`},
		{"a service meanwhile", execute("service", 2000), "", `"true false"`},
		{"a service that is cancelled", execute("service", 2000), "cancelled", `"false true"`},
		{"an error after the deadline", execute("error", 2000), "", `"code":"timeout"`},
		{"an error after a cancellation", execute("error", 2000), "cancelled", `"code":"cancelled"`},
		{"a hook", hook, "", `"code":"timeout"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := talkTo(t, waiting())
				c.say(test.say)
				if test.cancel != "" {
					<-time.After(time.Second)
					c.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel","params":{"call":"c","reason":%q}}`, test.cancel))
				}
				line := c.hear()
				if strings.Contains(line, `"cache.get"`) {
					line = c.hear()
				}
				if !strings.Contains(line, test.want) {
					t.Errorf("got %s want %s", line, test.want)
				}
			})
		})
	}
}

// TestServicesHaveMethods: what docs/services.md names has a method of Call that
// is named as the service is.
func TestServicesHaveMethods(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/services.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^### ([a-z_]+\.[a-z_]+)$`).FindAllSubmatch(page, -1)
	if len(names) < 40 {
		t.Fatalf("found %d services in docs/services.md", len(names))
	}
	spelt := map[string]string{"http": "HTTP", "kb": "KB", "llm": "LLM", "ocr": "OCR"}
	for _, found := range names {
		var name string
		for _, word := range strings.FieldsFunc(string(found[1]), func(r rune) bool { return r == '.' || r == '_' }) {
			if other := spelt[word]; other != "" {
				name += other
			} else {
				name += string(bytes.ToUpper([]byte(word[:1]))) + word[1:]
			}
		}
		if string(found[1]) == "operations.call" {
			name = "Call"
		}
		if _, ok := reflect.TypeFor[*mortise.Call]().MethodByName(name); !ok {
			t.Errorf("%s: Call has no method %s", found[1], name)
		}
	}
}
