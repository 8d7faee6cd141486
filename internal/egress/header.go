package egress

import (
	"net/textproto"
	"slices"
)

// refusedHeaders are the host's own to write, or make a GET something else.
var refusedHeaders = []string{
	"Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"X-Http-Method", "X-Http-Method-Override", "X-Method-Override",
}

// RefusedHeader reports whether no plugin may send the header, in whatever
// letter case.
func RefusedHeader(name string) bool {
	return slices.Contains(refusedHeaders, textproto.CanonicalMIMEHeaderKey(name))
}

// RefusedHeaders returns the names of the headers that no plugin may send.
func RefusedHeaders() []string { return slices.Clone(refusedHeaders) }
