package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mortise-dev/mortise/internal/host/reload"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/plugin"
)

// reloadPath is where the owner's socket takes a request to read the configuration again.
// No listener of the network has it.
const reloadPath = "/owner/reload"

// Bounds of a reload that is asked for over the socket.
const (
	reloadTime  = 30 * time.Second
	reloadBytes = 1 << 20
)

// answerReload has the configuration read again for the owner, who presents no token: that
// is for the API.
func (f *front) answerReload(w http.ResponseWriter, r *http.Request) {
	switch {
	case !only(w, r, http.MethodPost):
	case len(r.Header.Values("Authorization")) > 0:
		write(w, http.StatusForbidden, errorBody(plugin.CodePolicyDenied, "the owner asks for this, without a token"))
	default:
		done, err := f.reload()
		if err != nil { // its reader is the owner, who wrote the file
			write(w, http.StatusUnprocessableEntity, errorBody(plugin.CodeInvalidInput, err.Error()))
			return
		}
		write(w, http.StatusOK, map[string]any{"changed": done.Changed, "restart": done.Restart})
	}
}

// Reload asks the host that serves a data directory to read its configuration again, over
// the socket of its owner.
func Reload(ctx context.Context, home string) (done reload.Report, err error) {
	if home, err = filepath.Abs(home); err != nil {
		return done, err
	}
	path, err := OwnerSocket(home)
	if err != nil {
		return done, err
	}
	over := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	ctx, cancel := context.WithTimeout(ctx, reloadTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+reloadPath, nil)
	if err != nil {
		return done, err
	}
	answer, err := over.RoundTrip(request)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
		return done, plugin.Errorf(plugin.CodeUnavailable, "no host serves %s; 'mortise serve' begins with the configuration as it is", home)
	case err != nil:
		return done, plugin.Errorf(plugin.CodeUnavailable, "the host that serves %s does not answer: %w", home, err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, reloadBytes))
	if err != nil {
		return done, plugin.Errorf(plugin.CodeUnavailable, "the host that serves %s does not answer: %w", home, err)
	}
	if answer.StatusCode == http.StatusOK {
		return done, json.Unmarshal(raw, &done)
	}
	var refused struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(raw, &refused) != nil || refused.Error.Message == "" {
		return done, plugin.Errorf(plugin.CodeUnavailable, "the host that serves %s answers %s: %.200s", home, answer.Status, bytes.TrimSpace(raw))
	}
	return done, &setup.Error{Err: errors.New(refused.Error.Message)}
}
