package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// noBatches is why an array of messages is refused.
const noBatches = "JSON-RPC batches are not taken: send each message by itself"

// single passes on requests whose body is one message. A batch would be many calls that the rate
// of the token counts once, and a server of the SDK answers one message at a time: see [typed].
func single(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil {
			next.ServeHTTP(w, r)
			return
		}
		text := bufio.NewReader(r.Body)
		batch, err := isBatch(text)
		if err != nil && err != io.EOF { // io.EOF is for the SDK to refuse
			http.Error(w, "the body cannot be read", http.StatusBadRequest)
			return
		}
		if batch {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(refusal(json.RawMessage("null"), jsonrpc.CodeInvalidRequest, noBatches)) // the client may be gone
			return
		}
		r.Body = begun{text, r.Body}
		next.ServeHTTP(w, r)
	})
}

// begun is a body of which the beginning was looked at.
type begun struct {
	io.Reader
	io.Closer
}

// isBatch reports whether a JSON text begins an array. It reads the white space before it.
func isBatch(text *bufio.Reader) (bool, error) {
	for {
		first, err := text.Peek(1)
		if err != nil {
			return false, err
		}
		if bytes.IndexByte([]byte(" \t\r\n"), first[0]) < 0 {
			return first[0] == '[', nil
		}
		_, _ = text.Discard(1)
	}
}
