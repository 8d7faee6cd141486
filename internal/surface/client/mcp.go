package client

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/mcp"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// ServeMCP speaks the Model Context Protocol on two streams, for who may use a host, until the
// input ends. mode and request say which tools are listed, as mcp.list and mcp.for do; a host
// that serves lists as its configuration says where both are empty.
func ServeMCP(ctx context.Context, h Host, in io.Reader, out io.Writer, log *slog.Logger, mode, request string) error {
	list := mcp.List{Mode: mode, For: request}
	if !list.Known() || (mode == mcp.ListRouted) != (request != "") {
		return Misuse{plugin.Errorf(plugin.CodeInvalidInput, "--list is all, routed or search, and --for is the request that --list routed chooses for")}
	}
	switch h := h.(type) {
	case embedded:
		return mcp.Stdio(ctx, in, out, h.API, host.Caller{Scopes: host.Scopes}, mcp.Options{List: list, Log: log, Flush: true})
	case *remote:
		query := ""
		if mode != "" {
			query = "?" + url.Values{"list": {mode}, "for": {request}}.Encode()
		}
		return mcp.Forward(ctx, in, out, func(ctx context.Context, header http.Header, body []byte) (*http.Response, error) {
			return h.relay(ctx, rest.MCPPath+query, header, body)
		})
	}
	return plugin.Errorf(plugin.CodeInternal, "a host that is reached in no known way")
}

// relay sends bytes to a path of the host, and returns whatever it answers.
func (r *remote) relay(ctx context.Context, path string, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	req.Header.Set("User-Agent", "mortise/"+host.Version)
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if r.as != "" {
		req.Header.Set(rest.AsHeader, url.QueryEscape(r.as))
	}
	res, err := r.http.Do(req)
	if err != nil {
		return nil, r.unreached(ctx, err)
	}
	return res, nil
}
