package client

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/mcp"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// MCPCommand returns the command that speaks the protocol on its standard streams, for the host
// that reach finds. What it has to say beside the protocol goes to errs.
func MCPCommand(in io.Reader, out, errs io.Writer, reach func(ctx context.Context, do func(Host) error) error) *cobra.Command {
	var mode, request string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve operations as tools of the Model Context Protocol, on standard input and output",
		Long: `Serve operations as tools of the Model Context Protocol, on standard input and
output, for a client that starts this program: an editor or a coding agent. What it
lists is what you may run, and what it calls is judged and recorded as your call.
Where a host serves the data directory, or at a URL, that host is asked.`,
		Example: `  mortise mcp
  mortise mcp --list search
  mortise mcp --list routed --for "look into a phishing mail"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return reach(cmd.Context(), func(h Host) error {
				return ServeMCP(cmd.Context(), h, in, out, slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn})), mode, request)
			})
		},
	}
	cmd.Flags().StringVar(&mode, "list", "", "tools that are listed: all, routed, or search, which finds them; as mcp.list says where it is empty")
	cmd.Flags().StringVar(&request, "for", "", "with --list routed: the request that the router chooses tools for")
	return cmd
}

// ServeMCP speaks the Model Context Protocol on two streams, for who may use a host, until the
// input ends. mode and request say which tools are listed, as mcp.list and mcp.for do; a host
// that serves lists as its configuration says where both are empty.
func ServeMCP(ctx context.Context, h Host, in io.Reader, out io.Writer, log *slog.Logger, mode, request string) error {
	list := mcp.List{Mode: mode, For: request}
	if !list.Known() || (mode == mcp.ListRouted) != (request != "") {
		return plugin.Errorf(plugin.CodeInvalidInput, "--list is all, routed or search, and --for is the request that --list routed chooses for")
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
