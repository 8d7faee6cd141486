package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// Policies implements [Host].
func (r *remote) Policies() Policies { return remotePolicies{r} }

type remotePolicies struct{ *remote }

// Set implements [Policies].
func (r remotePolicies) Set(ctx context.Context) ([]host.PolicyText, string, error) {
	var all rest.Policies
	err := r.get(ctx, &all, nil, "policies")
	return each(all.Policies, func(p rest.PolicyText) host.PolicyText {
		text := host.PolicyText{Name: p.Name, Source: p.Source, Policies: p.Policies, By: p.By}
		if !p.At.IsZero() {
			text.At = &p.At
		}
		return text
	}), all.Version, err
}

// Put implements [Policies]. Where was is empty, the set is that which is in force.
func (r remotePolicies) Put(ctx context.Context, name string, text []byte, was string) (host.PolicyChange, error) {
	return r.changed(ctx, http.MethodPut, name, map[string]string{"text": string(text)}, was)
}

// Delete implements [Policies].
func (r remotePolicies) Delete(ctx context.Context, name, was string) (host.PolicyChange, error) {
	return r.changed(ctx, http.MethodDelete, name, nil, was)
}

func (r remotePolicies) changed(ctx context.Context, method, name string, body any, was string) (host.PolicyChange, error) {
	if was == "" {
		var err error
		if _, was, err = r.Set(ctx); err != nil {
			return host.PolicyChange{}, err
		}
	}
	var set rest.PolicySet
	err := r.change(ctx, method, body, &set, `"`+was+`"`, "policies", name)
	return host.PolicyChange{Policies: set.Policies, Version: set.Version}, err
}

// questionOf is a request as it is sent: what is asked at a command line is asked as one.
func questionOf(asked host.PolicyRequest) (q rest.PolicyQuestion, err error) {
	if asked.Origin == "" {
		asked.Origin = plugin.OriginCLI
	}
	raw, err := json.Marshal(asked, json.OmitZeroStructFields(true))
	if err != nil {
		return q, err
	}
	return q, json.Unmarshal(raw, &q)
}

// Ask implements [Policies].
func (r remotePolicies) Ask(ctx context.Context, asked host.PolicyRequest) (d plugin.Decision, err error) {
	return d, r.asked(ctx, asked, &d, "policies:ask")
}

// Explain implements [Policies].
func (r remotePolicies) Explain(ctx context.Context, asked host.PolicyRequest) (x host.PolicyExplanation, err error) {
	return x, r.asked(ctx, asked, &x, "policies:explain")
}

func (r remotePolicies) asked(ctx context.Context, asked host.PolicyRequest, out any, path string) error {
	q, err := questionOf(asked)
	if err != nil {
		return err
	}
	return r.post(ctx, q, out, path)
}

// Bounds of what is tried.
const (
	mostTried  = 1000    // requests that are sent at a time
	maxRequest = 4 << 20 // bytes of one of them
)

// Try implements [Policies]. What is wrong with a request is said by its line, as in this process.
func (r remotePolicies) Try(ctx context.Context, documents []host.PolicyDocument, requests io.Reader, name string) (host.Simulation, error) {
	s := host.Simulation{Differences: []host.PolicyDifference{}}
	var texts []rest.PolicyFile
	for _, d := range documents {
		texts = append(texts, rest.PolicyFile{Name: d.Name, Text: string(d.Text)})
	}
	var questions []rest.PolicyQuestion
	var numbers []int
	send := func() error {
		if len(questions) == 0 {
			return nil
		}
		var some host.Simulation
		if err := r.post(ctx, map[string]any{"documents": texts, "requests": questions}, &some, "policies:simulate"); err != nil {
			return err
		}
		s.Requests += some.Requests
		for _, d := range some.Differences {
			d.Line = numbers[min(max(d.Line, 1), len(numbers))-1]
			s.Differences = append(s.Differences, d)
		}
		questions, numbers = nil, nil
		return nil
	}
	lines := bufio.NewScanner(requests)
	lines.Buffer(nil, maxRequest)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var asked host.PolicyRequest
		err := json.Unmarshal(lines.Bytes(), &asked, json.RejectUnknownMembers(true))
		if err == nil {
			err = asked.KnownAction()
		}
		var q rest.PolicyQuestion
		if err == nil {
			q, err = questionOf(asked)
		}
		if err != nil {
			return s, plugin.Errorf(plugin.CodeInvalidInput, "%s:%d: %w", name, n, err)
		}
		if questions, numbers = append(questions, q), append(numbers, n); len(questions) == mostTried {
			if err := send(); err != nil {
				return s, err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return s, errors.Join(plugin.Errorf(plugin.CodeInvalidInput, "%s:%d: %w", name, n+1, err))
	}
	return s, send()
}
