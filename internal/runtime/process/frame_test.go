package process_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
)

// long answers what a plugin asks with as much as the method says: "x.value1000"
// is a value of 1000 bytes, "x.error1000" an error with details of as many.
type long struct{}

func (long) Serve(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	kind := strings.TrimRight(strings.TrimPrefix(method, "x."), "0123456789")
	n, err := strconv.Atoi(strings.TrimPrefix(method, "x."+kind))
	if err != nil {
		return nil, err
	}
	text := json.RawMessage(`"` + strings.Repeat("a", n-2) + `"`)
	switch kind {
	case "error":
		return nil, &plugin.Error{Code: plugin.CodeRateLimited, Message: "too many", Details: text}
	case "message":
		return nil, plugin.Errorf(plugin.CodeRateLimited, "%s", text)
	}
	return text, nil
}

// What the host would say in a line that is longer than its own limit fails the
// one request that it belongs to. The plugin never sees the line, and a call
// beside it goes on.
func TestTheHostKeepsToItsOwnFrameLimit(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	r := newRunner(t, process.Options{PerTenant: 1, FrameBytes: limit})
	beside, held := make(chan error, 1), newGate()
	go func() {
		_, err := r.Run(t.Context(), target("broad", "hold"), call(`{}`), held)
		beside <- err
	}()
	held.await(t)
	pid, err := run(t, r, target("broad", "pid"), call(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	measure := func(method string) string {
		t.Helper()
		res, err := r.Run(t.Context(), target("broad", "measure"), call(`{"method":"`+method+`"}`), long{})
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		return string(res.Data)
	}
	for method, want := range map[string]string{
		"x.value" + strconv.Itoa(limit-100): `"` + strconv.Itoa(limit-100) + ` bytes"`,
		"x.value" + strconv.Itoa(limit):     `"limit_exceeded"`, // the value fits, and what stands around it does not
		"x.value" + strconv.Itoa(limit*10):  `"limit_exceeded"`,
		"x.error" + strconv.Itoa(limit*10):  `"rate_limited"`,
		"x.message" + strconv.Itoa(limit*2): `"rate_limited"`,
		"x.error1000":                       `"rate_limited"`,
	} {
		if got := measure(method); got != want {
			t.Errorf("%s: %s, not %s", method, got, want)
		}
	}
	for _, bytes := range []int{limit - 10, limit, 10 * limit} {
		_, err := run(t, r, target("broad", "echo"), call(`"`+strings.Repeat("a", bytes-2)+`"`))
		wantCode(t, err, plugin.CodeInputTooLarge, "bytes")
		if unsent, ok := err.(interface{ Sent() bool }); !ok || unsent.Sent() {
			t.Errorf("%d bytes: %T does not say that the plugin never had the call", bytes, err)
		}
	}
	if again, err := run(t, r, target("broad", "pid"), call(`{}`)); err != nil || string(again.Data) != string(pid.Data) {
		t.Errorf("the process is another: %s, %v", again.Data, err)
	}
	held.open()
	if err := testwait.Receive(t, "the end of the call beside them", beside); err != nil {
		t.Errorf("the call beside them: %v", err)
	}
}
