package llm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
)

// A request is what one attempt sends to a provider whose format is written here. The official
// clients of these providers hold the format to account in tests: see reference_test.go.
type request struct {
	base, path string // the address, and the path below it
	query      string
	header     http.Header // of the key
	body       any         // as JSON
}

// send sends a request. The caller closes the answer's body.
func (t *attempt) send(ctx context.Context, r request) (io.ReadCloser, error) {
	u, err := url.Parse(r.base)
	if err != nil {
		return nil, err
	}
	u = u.JoinPath(r.path)
	u.RawQuery = r.query
	raw, err := json.Marshal(r.body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	if r.header != nil {
		req.Header = r.header
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "mortise")
	resp, err := t.client().Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		resp.Body.Close()
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return resp.Body, nil
}

// ask sends a request and reads its answer.
func (t *attempt) ask(ctx context.Context, r request, into any) error {
	body, err := t.send(ctx, r)
	if err != nil {
		return err
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// follow sends a request and yields the data of the events that answer it. It ends after an error.
// An event that has no empty line after it was cut off and is none.
func (t *attempt) follow(ctx context.Context, r request) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		body, err := t.send(ctx, r)
		if err != nil {
			yield(nil, err)
			return
		}
		defer body.Close()
		lines := bufio.NewReader(body)
		var data []byte
		for {
			line, err := lines.ReadBytes('\n')
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			line = bytes.TrimRight(line, "\r\n")
			switch more, is := bytes.CutPrefix(line, []byte("data:")); {
			case is:
				data = append(append(data, bytes.TrimPrefix(more, []byte(" "))...), '\n')
			case len(line) == 0:
				if event := bytes.TrimSpace(data); len(event) > 0 && !yield(event, nil) {
					return
				}
				data = nil
			case bytes.HasPrefix(line, []byte("{")): // an answer that is no event, as Gemini gives for an error
				if !yield(line, nil) {
					return
				}
			}
		}
	}
}

// isComplaint reports whether the data of an event say what went wrong instead of going on.
func isComplaint(data []byte) bool {
	var c struct {
		Error json.RawMessage `json:"error"`
	}
	return json.Unmarshal(data, &c) == nil && len(c.Error) > 0 && string(c.Error) != "null"
}
