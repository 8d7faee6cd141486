package client

import (
	"context"
	"io"
	"mime"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// The last events of a stream.
const (
	lastResult  = "result"
	lastProblem = "problem"
)

// stream asks with a POST and hears the events of the answer as they come, until its last:
// the result, which is read into out, or the problem, which is the error. An answer that is
// no stream is read into out as it is. An error of hear ends it, and closes the connection.
func (r *remote) stream(ctx context.Context, q asking, hear func(event string, data jsontext.Value) error, out any) error {
	q.method = http.MethodPost
	q.header = http.Header{"Accept": {"text/event-stream"}}
	res, err := r.send(ctx, q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "text/event-stream" {
		raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		if err != nil {
			return r.unreached(ctx, err)
		}
		return r.read(raw, out)
	}
	var end error
	err = events(res.Body, func(name string, data []byte) (more bool, err error) {
		switch name {
		case lastResult:
			end = r.read(data, out)
			return false, nil
		case lastProblem:
			end = r.problem(data)
			return false, nil
		}
		end = hear(name, data)
		return end == nil, nil
	})
	if err != nil {
		return r.unreached(ctx, err)
	}
	return end
}

// problem is the problem at the end of a stream.
func (r *remote) problem(raw []byte) error {
	var p rest.Problem
	if err := r.read(raw, &p); err != nil {
		return err
	}
	return &refused{problemError(&p), &p}
}

// read reads an answer into out, where that is not nil.
func (r *remote) read(raw []byte, out any) error {
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return plugin.Errorf(plugin.CodeUnavailable, "%s answers in a form that this version cannot read: %w", r.where(), err)
	}
	return nil
}
