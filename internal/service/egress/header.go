package egress

import (
	"errors"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"
)

// refusedHeaders are the host's own to write, or make a GET something else.
var refusedHeaders = []string{
	"Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"X-Http-Method", "X-Http-Method-Override", "X-Method-Override",
}

// RefusedHeader reports whether no plugin may send the header, in whatever
// letter case, or one that a server may take for it.
func RefusedHeader(name string) bool { return slices.Contains(refusedHeaders, FoldHeader(name)) }

// FoldHeader returns the name that a server may read for a header: those that
// hand headers on as variables (CGI, WSGI) make one of X_Signature and
// X-Signature.
func FoldHeader(name string) string {
	return textproto.CanonicalMIMEHeaderKey(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name))
}

// RefusedHeaders returns the names of the headers that no plugin may send.
func RefusedHeaders() []string { return slices.Clone(refusedHeaders) }

// RetryAfter reads the header of that name: seconds or a date. More seconds than fit
// count as a lifetime.
func RetryAfter(value string) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, 1<<31)) * time.Second, true
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(date)), true
	}
	return 0, false
}
