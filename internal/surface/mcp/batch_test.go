package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mortise-dev/mortise/internal/surface/mcp"
)

// batchOf returns n calls of desk.line in one array.
func batchOf(n int) string {
	var calls []string
	for i := range n {
		calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"desk.line","arguments":{"text":"%d"}}}`, i, i))
	}
	return "[" + strings.Join(calls, ",") + "]"
}

// A request carries one message, whatever revision it says it is of: the rate of a token counts
// requests, and no answer can belong to another message.
func TestABatchIsRefusedOnEachRevision(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	token := b.token("ann", "run")
	for _, revision := range append([]string{"", "2024-11-05", "2025-03-26", "1900-01-01"}, revisions...) {
		for name, text := range map[string]string{"two": batchOf(2), "one": batchOf(1), "none": "[]", "after space": " \r\n\t" + batchOf(2), "of batches": "[" + batchOf(2) + "]"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/mcp", strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			if revision != "" {
				r.Header.Set("Mcp-Protocol-Version", revision)
			}
			res, err := bearer(token).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			wantNoBatches(t, fmt.Sprintf("revision %q, %s: %d", revision, name, res.StatusCode), said)
			if res.StatusCode != http.StatusBadRequest {
				t.Errorf("revision %q, %s: the status is %d, want 400", revision, name, res.StatusCode)
			}
		}
	}
	if got := b.lines(); got != "" {
		t.Errorf("the calls of batches left %q, want nothing", got)
	}
}

func TestABatchIsRefusedOnStandardStreams(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	post := func(context.Context, http.Header, []byte) (*http.Response, error) {
		return nil, errors.New("the batch was passed on")
	}
	if err := mcp.Forward(t.Context(), strings.NewReader(batchOf(2)+"\n"), &out, post); err != nil {
		t.Fatal(err)
	}
	wantNoBatches(t, "a line", out.Bytes())
}

func wantNoBatches(t *testing.T, what string, said []byte) {
	t.Helper()
	var answer struct {
		ID    json.RawMessage
		Error jsonrpc.Error
	}
	if err := json.Unmarshal(said, &answer); err != nil || string(answer.ID) != "null" || answer.Error.Code != jsonrpc.CodeInvalidRequest || !strings.Contains(answer.Error.Message, "each message by itself") {
		t.Errorf("%s is answered %q, %v; want the error -32600 about batches", what, said, err)
	}
}
