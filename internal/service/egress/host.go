package egress

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A Host is one entry of a manifest's http.hosts: an exact host, or a suffix
// that stands for all hosts below a domain, and the ports it may be asked on.
type Host struct {
	name   string // in lower case; an IPv6 address without its brackets
	suffix bool   // name begins with a dot
	port   uint16 // 0 for 443 and 80
}

// ParseHost reads an entry: api.example.com, .example.com (the domain itself
// is not among the hosts below it), or either with a port, api.example.com:8443.
func ParseHost(text string) (Host, error) {
	refuse := func(format string, args ...any) (Host, error) {
		return Host{}, fmt.Errorf("%.260q is no host: "+format, append([]any{text}, args...)...)
	}
	switch {
	case strings.ContainsAny(text, "/@?#"):
		return refuse("write the name alone, such as api.example.com, without https:// and without a path")
	case strings.Contains(text, "*"):
		return refuse("write .example.com for all hosts below example.com")
	case text != strings.ToLower(text):
		return refuse("write it in lower case")
	}
	name, port, err := splitPort(text)
	if err != nil {
		return refuse("%w", err)
	}
	h := Host{name: name, port: port, suffix: strings.HasPrefix(name, ".")}
	if h.suffix {
		if !strings.Contains(name[1:], ".") {
			return refuse("everything below %s is more than a manifest may ask for", name)
		}
		name = name[1:]
	}
	canonical, err := hostName(name)
	if err != nil {
		return refuse("%w", err)
	}
	if _, err := netip.ParseAddr(canonical); err == nil && h.suffix {
		return refuse("there is nothing below an address")
	}
	return h, nil
}

// covers reports whether the entry allows a host on a port.
func (h Host) covers(name string, port uint16) bool {
	if h.port != port && (h.port != 0 || port != 443 && port != 80) {
		return false
	}
	if h.suffix {
		_, err := netip.ParseAddr(name)
		return err != nil && len(name) > len(h.name) && strings.HasSuffix(name, h.name)
	}
	return h.name == name
}

// splitPort cuts an authority into a host, which is not checked yet, and a
// port, 0 where there is none.
func splitPort(authority string) (name string, port uint16, err error) {
	name, digits, hasPort := authority, "", false
	if inner, after, ok := strings.Cut(authority, "]"); strings.HasPrefix(authority, "[") {
		if !ok || after != "" && after[0] != ':' {
			return "", 0, fmt.Errorf("the brackets around an address are not closed")
		}
		if !strings.Contains(inner, ":") {
			return "", 0, fmt.Errorf("only an IPv6 address stands in brackets")
		}
		name = inner[1:]
		digits, hasPort = strings.CutPrefix(after, ":")
	} else if strings.Count(authority, ":") == 1 {
		name, digits, hasPort = strings.Cut(authority, ":")
	} else if strings.Contains(authority, ":") {
		return "", 0, fmt.Errorf("an IPv6 address stands in brackets")
	}
	if !hasPort {
		return name, 0, nil
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != digits {
		return "", 0, fmt.Errorf("%.20q is no port", digits)
	}
	return name, uint16(n), nil
}

// hostName returns the one way to write a host, in lower case, or why it is
// written otherwise. Some programs read 0x7f.1 or 2130706433 as an address and
// others as a name; nothing that has two readings passes.
func hostName(text string) (string, error) {
	name := strings.ToLower(text)
	if strings.ContainsAny(name, ":%") {
		addr, err := netip.ParseAddr(name)
		switch {
		case err != nil:
			return "", fmt.Errorf("it holds a character that belongs to no name and no address")
		case addr.Zone() != "":
			return "", fmt.Errorf("an address with a zone is one of this machine's own network")
		}
		return addr.String(), nil
	}
	if len(name) > 253 {
		return "", fmt.Errorf("a name has at most 253 characters")
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		switch {
		case label == "":
			return "", fmt.Errorf("a part of the name is empty")
		case len(label) > 63:
			return "", fmt.Errorf("a part of a name has at most 63 characters")
		}
		for _, c := range []byte(label) {
			switch {
			case c >= 0x80:
				return "", fmt.Errorf("a name of other letters is written in its ASCII form, xn--")
			case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
			default:
				return "", fmt.Errorf("it holds a character that belongs to no name and no address")
			}
		}
	}
	if numeric(labels[len(labels)-1]) {
		if addr, err := netip.ParseAddr(name); err != nil || !addr.Is4() {
			return "", fmt.Errorf("an IPv4 address is written as four decimal numbers, 192.0.2.1")
		}
	}
	return name, nil
}

// numeric reports whether a name that ends in this label is read as an IPv4
// address (WHATWG URL, "ends in a number checker").
func numeric(label string) bool {
	digits, isHex := strings.CutPrefix(label, "0x")
	for _, c := range []byte(digits) {
		if (c < '0' || c > '9') && (!isHex || c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
