package toolset

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of what is sent to webhooks.
const (
	webhookSend      = 15 * time.Second // for the answer to an asynchronous delivery
	webhooksAtOnce   = 4                // that are sent to, of all there are
	maxWebhookAnswer = 64 << 10
)

// Webhooks are the plugins that stand elsewhere and hear of events by HTTP. What
// one may reach another may not, so that each has connections of its own.
type Webhooks struct {
	t     *Toolset
	slots chan struct{}   // one for each that is sent to
	Waits []time.Duration // how long it takes from one attempt to the next

	mu      sync.Mutex // guards clients
	clients map[string]*http.Transport
}

// Close ends the connections that are idle.
func (w *Webhooks) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.clients {
		t.CloseIdleConnections()
	}
	clear(w.clients)
	return nil
}

// client returns the connections to the webhook of a plugin. Redirects are not
// followed: what is signed for one address is no other's business.
func (w *Webhooks) client(name string, mapped bool) *http.Transport {
	key := name + "/" + strconv.FormatBool(mapped)
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.clients[key]; t != nil {
		return t
	}
	dialer := &egress.Dialer{Plugin: name, Grants: w.t.Egress}
	t := &http.Transport{
		Proxy:                  nil, // HTTP_PROXY and its like are not asked
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // an answer is as large as it is
		MaxResponseHeaderBytes: maxWebhookAnswer,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        20 * time.Second,
	}
	if mapped && w.t.Roots != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: w.t.Roots}
	}
	w.clients[key] = t
	return t
}

// A webhookAnswer is what a webhook answered.
type webhookAnswer struct {
	status int
	body   []byte
	more   bool          // than is read
	after  time.Duration // for which it asks not to be tried again
}

// post sends something to the webhook of a plugin, signed.
func (w *Webhooks) post(ctx context.Context, tenant string, m *plugin.Manifest, id string, body []byte, limit time.Duration) (webhookAnswer, error) {
	var got webhookAnswer
	u, err := egress.ParseURL(m.Runner.URL)
	if err != nil {
		return got, err
	}
	value, found, err := w.t.Vault.Find(ctx, secret.Need{Tenant: tenant, Plugin: m.Name, Name: m.Runner.Secret, Scope: plugin.SecretOfSystem})
	if err != nil {
		return got, err
	}
	if !found {
		return got, plugin.Errorf(plugin.CodeMissingSecrets, "%s: the secret %s, which its deliveries are signed with, is not set; 'mortise secrets set %s --system --plugin %s' sets it",
			m.Name, m.Runner.Secret, m.Runner.Secret, m.Name)
	}
	header, err := webhook.Sign(value, id, time.Now(), body)
	if err != nil {
		return got, err
	}
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", "mortise/"+version.Host+" ("+m.Name+")")
	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		plugin.Errorf(plugin.CodeTimeout, "%s: no whole answer came from %s within %s", m.Name, u.Host, limit))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return got, plugin.Errorf(plugin.CodeInvalidInput, "%s: it cannot be asked: %w", m.Name, err)
	}
	req.Header = header
	host, _ := egress.Endpoint(u)
	resp, err := w.client(m.Name, w.t.Egress.Mapped(host)).RoundTrip(req)
	if err != nil {
		return got, unreached(ctx, m.Name, u.Host, err)
	}
	defer resp.Body.Close()
	got.status = resp.StatusCode
	got.after, _ = egress.RetryAfter(resp.Header.Get("Retry-After"))
	got.body, err = io.ReadAll(io.LimitReader(resp.Body, maxWebhookAnswer+1))
	if err != nil {
		return got, unreached(ctx, m.Name, u.Host, err)
	}
	if got.more = len(got.body) > maxWebhookAnswer; got.more {
		got.body = got.body[:maxWebhookAnswer]
	}
	return got, nil
}

// unreached says why there is no answer.
func unreached(ctx context.Context, name, host string, err error) error {
	var ours *plugin.Error
	var op *net.OpError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &ours): // of the dialer
		return &plugin.Error{Code: ours.Code, Message: name + ": " + ours.Message, Err: err}
	case errors.As(err, &op):
		return plugin.Errorf(plugin.CodeUnavailable, "%s: %s cannot be reached: %w", name, host, op.Err)
	}
	return plugin.Errorf(plugin.CodeUnavailable, "%s: %s gave no proper answer: %.200q", name, host, fmt.Sprint(err))
}

// judge returns why an answer does not count as one. Who says that it is gone for
// good is disabled.
func (w *Webhooks) judge(ctx context.Context, name string, got webhookAnswer) error {
	switch {
	case got.status >= 200 && got.status < 300:
		return nil
	case got.status == http.StatusGone:
		w.gone(ctx, name)
	case got.status >= 300 && got.status < 400:
		return plugin.Errorf(plugin.CodeUnavailable, "%s: it answered %d, and a webhook's redirects are not followed: put its real address into the manifest", name, got.status)
	}
	return plugin.Errorf(plugin.CodeUnavailable, "%s: it answered %d", name, got.status)
}

// gone disables a plugin that wants to hear of nothing any more.
func (w *Webhooks) gone(ctx context.Context, name string) {
	log := w.t.Log.With("plugin", name)
	log.Warn("a webhook answered 410 Gone: its plugin is disabled; 'mortise plugins enable " + name + "' lets it hear of events again")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outboxPatient)
	defer cancel()
	if _, err := w.t.Registry.Disable(ctx, name); err != nil {
		log.Error("it could not be disabled", "cause", err.Error())
	}
}

// cause is the shortest true account of a failure.
func cause(err error) string { return cmp.Or(plugin.AsError(err).Message, err.Error()) }
