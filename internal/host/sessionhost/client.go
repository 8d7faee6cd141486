package sessionhost

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/plugin"
)

// A Client speaks to one session host. It is safe for concurrent use.
type Client struct {
	http    *http.Client
	session string
}

// dialTime is how long a session host may take to be reached, or to say who it is.
const dialTime = 2 * time.Second

// cancelTime is how long a call that was cancelled may take to end.
const cancelTime = 10 * time.Second

// What became of a session host.
var (
	ErrGone = errors.New("no session host listens")                // it has not taken the call
	ErrLost = errors.New("the session host ended during the call") // and its outcome is unknown
)

// newClient returns a client of the session host whose socket has that path. Nothing
// is sent yet.
func newClient(socket, session string) *Client {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			d := net.Dialer{Timeout: dialTime}
			conn, err := d.DialContext(ctx, "unix", socket)
			if err != nil {
				return nil, err
			}
			if err := checkPeer(conn); err != nil {
				_ = conn.Close()
				return nil, err
			}
			return conn, nil
		},
		DisableKeepAlives: true, // each exchange has a connection of its own, and nothing stays behind
	}
	return &Client{http: &http.Client{Transport: transport}, session: session}
}

// post begins an exchange.
func (c *Client) post(ctx context.Context, path string, value any) (*http.Response, error) {
	raw, err := encode(value)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxRequest {
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "the call has %d bytes; at most %d are carried to the process of a session", len(raw), maxRequest)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://session"+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		var refused *plugin.Error
		if errors.As(err, &refused) {
			return nil, refused
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, plugin.Errorf(plugin.CodeInternal, "the process of session %s answered %s", c.session, resp.Status)
	}
	return resp, nil
}

// hello asks the session host who it is.
func (c *Client) hello(ctx context.Context) (hello, error) {
	var h hello
	err := c.ask(ctx, pathHello, struct{}{}, &h)
	return h, err
}

// ask is an exchange of one object for another.
func (c *Client) ask(ctx context.Context, path string, value, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, dialTime, ErrGone)
	defer cancel()
	resp, err := c.post(ctx, path, value)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return json.Unmarshal(raw, into)
}

// Call has a call of the session made by the session host, on behalf of a principal
// that its configuration names. Once ctx ends the call is cancelled, and its end
// is waited for.
//
// sent reports that the session host may have begun. Where it is false, the same call
// can be made again.
func (c *Client) Call(ctx context.Context, principal string, call plugin.Call) (res plugin.Result, sent bool, err error) {
	if call.ID == "" {
		call.ID = uuid.Must(uuid.NewV7()).String()
	}
	in := request{
		Exchange: uuid.NewString(), Principal: principal, ID: call.ID, Operation: call.Operation, Input: []byte(call.Input), Key: call.Key,
		Fresh: call.Fresh, NoWait: call.NoWait, TimeoutNS: int64(call.Timeout), Patience: int64(call.Patience), Labels: call.Labels, Files: call.Files, Quiet: call.Observe == nil,
	}
	if len(in.Input) == 0 {
		in.Input = []byte("{}")
	}
	res, sent, err = c.exchange(ctx, pathCall, in.Exchange, in, call.Observe)
	if res.CallID == "" && sent {
		res.CallID = call.ID
	}
	return res, sent, err
}

// Advance asks the session host to resume a queued call. sent reports whether it took the
// request.
func (c *Client) Advance(ctx context.Context, id string) (sent bool, err error) {
	in := exchangeRequest{Exchange: uuid.NewString(), ID: id}
	_, sent, err = c.exchange(ctx, pathAdvance, in.Exchange, in, nil)
	return sent, err
}

// exchange is one that lasts as long as a call, and that ctx only asks to end.
func (c *Client) exchange(ctx context.Context, path, name string, value any, observe func(plugin.Event)) (res plugin.Result, sent bool, err error) {
	if err := ctx.Err(); err != nil {
		return res, false, context.Cause(ctx)
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	over := make(chan struct{})
	asked := make(chan struct{})
	go func() { // asks for the end when the caller wants no more
		defer close(asked)
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		_ = c.ask(context.WithoutCancel(ctx), pathCancel, exchangeRequest{Exchange: name}, &struct{}{})
		select {
		case <-over:
		case <-time.After(cancelTime):
			end(plugin.Errorf(plugin.CodeCancelled, "the call was cancelled, and the process of session %s has not said within %s how it ended", c.session, cancelTime))
		}
	}()
	defer func() { close(over); <-asked }()

	resp, err := c.post(life, path, value)
	if err != nil {
		return res, false, err
	}
	defer resp.Body.Close()
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		l, err := readLine(lines)
		if err != nil && life.Err() != nil {
			return res, sent, context.Cause(life)
		}
		if err != nil && !sent {
			return res, false, fmt.Errorf("%w: %w", ErrGone, err)
		}
		if err != nil {
			return res, true, &plugin.Error{Code: plugin.CodeCrashed, Message: "the process that holds session " + c.session + " ended during the call", Err: errors.Join(ErrLost, err)}
		}
		switch {
		case l.End:
			if l.Result != nil {
				res = *l.Result
			}
			return res, sent, l.Error.error()
		case l.Event != nil && observe != nil:
			observe(*l.Event)
		case l.Taken:
			sent = true
		}
	}
}

// readLine reads one line of an answer.
func readLine(r *bufio.Reader) (line, error) {
	var l line
	var raw []byte
	for {
		part, err := r.ReadSlice('\n')
		raw = append(raw, part...)
		if len(raw) > maxLine {
			return l, fmt.Errorf("a line has more than %d bytes", maxLine)
		}
		if err == nil {
			break
		}
		if err != bufio.ErrBufferFull {
			return l, err
		}
	}
	return l, json.Unmarshal(raw, &l)
}
