package server

import (
	"net/http"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/surface/mcp"
	"github.com/mortise-dev/mortise/plugin"
)

// MetadataPath is where clients learn which providers' tokens the host takes (RFC 9728).
const MetadataPath = "/.well-known/oauth-protected-resource"

// metadata answers with that. It is for everyone: it names no one.
func (s *server) metadata(w http.ResponseWriter) {
	resource, issuers := s.Issuers()
	if len(issuers) == 0 {
		write(w, http.StatusNotFound, errorBody(plugin.CodeNotFound, "no provider's tokens are taken here"))
		return
	}
	write(w, http.StatusOK, map[string]any{
		"resource": resource, "resource_name": "Mortise", "authorization_servers": issuers, "bearer_methods_supported": []string{"header"},
		"scopes_supported": []string{host.ScopeRun, host.ScopeRead},
	})
}

// issuers are the providers whose tokens the configuration takes, and what the tokens have to
// be for.
func (f *front) issuers() (resource string, issuers []string) {
	c := f.app.Now().Server
	for _, m := range c.Machines {
		issuers = append(issuers, m.Issuer)
	}
	return c.Base(""), issuers
}

// metadataURL is where they are told; "" where there are none.
func (f *front) metadataURL() string {
	resource, issuers := f.issuers()
	if len(issuers) == 0 {
		return ""
	}
	return resource + MetadataPath
}

// tools is what answers a caller who speaks the Model Context Protocol.
func (f *front) tools(api host.API, by host.Caller) http.Handler {
	c := f.app.Now()
	base := c.Server.PublicURL
	if base == "" && f.at != nil {
		base = c.Server.Base(f.at.String())
	}
	return mcp.Handler(api, by, mcp.Options{List: mcp.List{Mode: c.MCP.List, For: c.MCP.For}, Profiles: profiles(c.MCP), Base: base, Log: f.app.Log()})
}

// profiles are what clients are shown that name one.
func profiles(c config.MCP) map[string]mcp.Profile {
	all := map[string]mcp.Profile{}
	for name, p := range c.Profiles {
		all[name] = mcp.Profile{List: mcp.List{Mode: p.List, For: p.For}, Operations: p.Operations, Short: p.Names == "operation"}
	}
	return all
}
