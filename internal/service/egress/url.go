package egress

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/mortise-dev/mortise/plugin"
)

// MaxURL is how long a URL may be. It also bounds what a request without a
// body can carry away.
const MaxURL = 8 << 10

// ParseURL reads a URL of http or https, without user information, whose host
// is written in the one plain way. The fragment is dropped, the host in lower
// case, without the dot that may stand at its end, and in ASCII.
func ParseURL(raw string) (*url.URL, error) {
	raw, err := asciiHost(raw)
	if err != nil {
		return nil, err
	}
	if err := plain(raw); err != nil {
		return nil, err
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the URL cannot be read: %.200s", unwrapped(err))
	}
	return u, normalize(u)
}

// Follow reads where a redirect from u leads, as [ParseURL] does.
func Follow(u *url.URL, location string) (*url.URL, error) {
	location, err := asciiHost(location)
	if err != nil {
		return nil, err
	}
	if err := plain(location); err != nil {
		return nil, err
	}
	next, err := u.Parse(location)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the URL cannot be read: %.200s", unwrapped(err))
	}
	if u.Scheme == "https" && next.Scheme == "http" {
		return nil, denied("a redirect from https to http is not followed")
	}
	return next, normalize(next)
}

// asciiHost writes the host of a URL in ASCII, xn--, where it is a name of other
// letters that has no second spelling: what a browser would first turn into
// something else, wide digits or ligatures, stays as it is and is refused.
func asciiHost(raw string) (string, error) {
	if len(raw) > MaxURL || isASCII(raw) {
		return raw, nil
	}
	scheme, rest, found := strings.Cut(raw, "//")
	if !found || !isASCII(scheme) || strings.ContainsAny(scheme, "/?#") {
		return raw, nil
	}
	authority, after := rest, ""
	if end := strings.IndexAny(rest, "/?#\\"); end >= 0 {
		authority, after = rest[:end], rest[end:]
	}
	if isASCII(authority) || strings.ContainsAny(authority, "@%[]") {
		return raw, nil
	}
	name, port, hasPort := strings.Cut(authority, ":")
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil {
		return raw, nil
	}
	back, err := idna.Lookup.ToUnicode(ascii)
	if err != nil || back != strings.ToLower(name) || isASCII(back) {
		return "", denied("the URL's host is not written plainly: %.60q is read as %.60q", name, ascii)
	}
	if hasPort {
		ascii += ":" + port
	}
	return scheme + "//" + ascii + after, nil
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
}

// plain refuses what would have to be escaped, and so is read in more than one way.
func plain(raw string) error {
	if len(raw) > MaxURL {
		return plugin.Errorf(plugin.CodeInvalidInput, "the URL has %d characters; at most %d are sent", len(raw), MaxURL)
	}
	for i := range len(raw) {
		switch c := raw[i]; {
		case c <= ' ' || c == 0x7f || c == '\\':
			return plugin.Errorf(plugin.CodeInvalidInput, "the URL holds the character %q, which has no place in one", c)
		case c >= 0x80:
			return plugin.Errorf(plugin.CodeInvalidInput, "the URL is not ASCII: percent-encode its path and query, and write a name of other letters as xn--")
		}
	}
	return nil
}

func normalize(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return denied("only http and https URLs are fetched, not %.20q", u.Scheme)
	case u.Opaque != "" || u.Host == "":
		return plugin.Errorf(plugin.CodeInvalidInput, "the URL names no host")
	case u.User != nil:
		return denied("a URL with user information is not fetched; put credentials into a header")
	}
	name, port, err := splitPort(u.Host)
	if err == nil {
		name, err = hostName(strings.TrimSuffix(name, "."))
	}
	if err != nil {
		return denied("the URL's host is not written plainly: %w", err)
	}
	u.Host = name
	if strings.Contains(name, ":") {
		u.Host = "[" + name + "]"
	}
	if port != 0 {
		u.Host += ":" + strconv.Itoa(int(port))
	}
	u.Fragment, u.RawFragment = "", ""
	return nil
}

// Endpoint returns the host and the port that u, from [ParseURL], asks.
func Endpoint(u *url.URL) (name string, port uint16) {
	name, port, _ = splitPort(u.Host)
	switch {
	case port != 0:
	case u.Scheme == "https":
		port = 443
	default:
		port = 80
	}
	return name, port
}

// Allow refuses u unless one of the hosts that a manifest declares covers it.
func Allow(hosts []string, u *url.URL) error {
	name, port := Endpoint(u)
	if slices.ContainsFunc(hosts, func(text string) bool {
		h, err := ParseHost(text)
		return err == nil && h.covers(name, port)
	}) {
		return nil
	}
	entry := strings.TrimSuffix(strings.TrimSuffix(u.Host, ":443"), ":80")
	return denied("%s on port %d is not among the hosts that the plugin declares; to declare it, add http: {hosts: [%q]} to the manifest; where that cannot be, an administrator grants it under egress.hosts in mortise.yaml", name, port, entry)
}

// unwrapped is what a URL's error says besides repeating the URL.
func unwrapped(err error) error {
	var within *url.Error
	if errors.As(err, &within) {
		return within.Err
	}
	return err
}
