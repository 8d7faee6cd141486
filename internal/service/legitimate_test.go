package service

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// legitimate are URLs that a plugin may well ask for, and how the request reaches the
// host if that differs from how it is written.
var legitimate = map[string]string{
	// Hosts.
	"http://api.example.com": "", "http://API.EXAMPLE.COM/": "api.example.com", "http://Api.Example.Com/Path": "api.example.com", "HTTP://api.example.com/": "", "hTTp://api.example.com/x": "",
	"http://api.example.com./": "api.example.com", "http://api.example.com.:80/x": "api.example.com", "http://API.example.com.": "api.example.com", "http://a.b.c.d.e.f.example.org/": "",
	"http://x_y.example.org/": "", "http://-x.example.org/": "", "http://x-.example.org/": "", "http://a--b.example.org/": "", "http://1.example.org/": "", "http://123.example.org/": "", "http://0x7f.example.org/": "",
	"http://127.0.0.1.example.org/": "", "http://localhost.example.org/": "", "http://10.example.org/": "", "http://_dmarc.example.org/": "", "http://1e100.example.org/": "",
	"http://xn--bcher-kva.example.org/": "", "http://XN--BCHER-KVA.example.org/": "xn--bcher-kva.example.org", "http://xn--p1ai.example.org/": "", "http://xn--fiqs8s.example.org/": "", "http://xn--80akhbyknj4f.example.org/": "",
	"http://bücher.example.org/": "xn--bcher-kva.example.org", "http://Bücher.example.org/x?y": "xn--bcher-kva.example.org", "http://пример.example.org/": "xn--e1afmkfd.example.org",
	"http://例え.example.org/": "xn--r8jz45g.example.org", "http://中国.example.org:80/": "xn--fiqs8s.example.org", "http://münchen.example.org./": "xn--mnchen-3ya.example.org", "http://한국.example.org/": "xn--3e0b707e.example.org",
	"http://ελλάδα.example.org/": "xn--hxakic4aa.example.org", "http://straße.example.org/": "xn--strae-oqa.example.org",
	"http://" + strings.Repeat("a", 63) + ".example.org/": "", "http://" + strings.Repeat("ab.", 70) + "example.org/": "",
	// Ports.
	"http://api.example.com:80/": "", "http://api.example.com:443/": "", "http://api.example.com:8443/": "", "http://x.example.org:443": "",
	// Addresses of the Internet.
	"http://1.1.1.1/": "", "http://8.8.8.8:80/dns-query": "", "http://93.184.215.14/": "", "http://[2606:4700:4700::1111]/": "", "http://[2606:4700:4700:0:0:0:0:1111]/": "[2606:4700:4700::1111]",
	"http://[2001:4860:4860::8888]:80/x": "", "http://[2001:4860:4860::8888]": "", "http://[2606:4700:4700::1111]:443/?q": "", "http://[2001:4860:4860:0000:0000:0000:0000:8888]/": "[2001:4860:4860::8888]",
	"http://[2606:4700:4700::AAAA]/": "[2606:4700:4700::aaaa]", "http://[2a00:1450:4001:82a::200e]/": "",
	// Paths.
	"http://api.example.com//": "", "http://api.example.com//double//slash": "", "http://api.example.com/a/../b": "", "http://api.example.com/./a": "", "http://api.example.com/..": "", "http://api.example.com/%2e%2e/x": "",
	"http://api.example.com/%20": "", "http://api.example.com/a%2Fb": "", "http://api.example.com/%E2%82%AC": "", "http://api.example.com/%e2%82%ac": "", "http://api.example.com/%00": "", "http://api.example.com/%25": "",
	"http://api.example.com/%0d%0aX:y": "", "http://api.example.com/@user": "", "http://api.example.com/user:pass@host": "", "http://api.example.com/a:b": "", "http://api.example.com/:80/": "", "http://api.example.com/~user/": "",
	"http://api.example.com/a;b=c;d": "", "http://api.example.com/a,b,c": "", "http://api.example.com/(a)": "", "http://api.example.com/a'b": "", "http://api.example.com/!$&'()*+,;=": "", "http://api.example.com/a=b&c": "",
	"http://api.example.com/http://127.0.0.1/": "", "http://api.example.com/[x]": "", "http://api.example.com/v1/things:batchGet": "", "http://api.example.com/repos/a/b/issues/1": "", "http://api.example.com/a.b.c": "",
	"http://api.example.com/" + strings.Repeat("p", 7000): "", "http://api.example.com/" + strings.Repeat("p/", 2000): "", "http://api.example.com/" + strings.Repeat("%41", 2000): "",
	// Queries.
	"http://api.example.com?": "", "http://api.example.com?q": "", "http://api.example.com/?": "", "http://api.example.com/?=": "", "http://api.example.com/?&&": "", "http://api.example.com/?a&b": "", "http://api.example.com/?a=b=c": "",
	"http://api.example.com/?a=1&a=2&a=": "", "http://api.example.com/?a[]=1&a[b]=2": "", "http://api.example.com/?u=http://localhost:22/": "", "http://api.example.com/?u=//169.254.169.254/": "", "http://api.example.com/?q=a+b%20c": "",
	"http://api.example.com/?q=%26%3D%23": "", "http://api.example.com/?q=a/b?c": "", "http://api.example.com/?q=a@b:c": "", "http://api.example.com/?q={}|^`": "", "http://api.example.com/?q='\"<>": "", "http://api.example.com/?a;b": "",
	"http://api.example.com/?filter=(a%20eq%20'b')": "", "http://api.example.com/?$select=id&$top=5": "", "http://api.example.com/?t=2026-01-02T03:04:05%2B00:00": "", "http://api.example.com/?" + strings.Repeat("k=v&", 1500): "",
	// Fragments, which are not sent.
	"http://api.example.com#": "", "http://api.example.com/#x": "", "http://api.example.com/?a#@127.0.0.1": "", "http://api.example.com/a#?b": "", "http://api.example.com/#/route?x=y": "",
}

// TestAHundredLegitimateURLs has each of them come to a server: no permitted request is
// refused.
func TestAHundredLegitimateURLs(t *testing.T) {
	t.Parallel()
	asked := ""
	s := newScene(t).serve(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Host
		_, _ = w.Write([]byte("ok"))
	})
	s.target.Manifest.HTTP.Hosts = append(s.target.Manifest.HTTP.Hosts, "1.1.1.1", "8.8.8.8", "93.184.215.14",
		"[2606:4700:4700::1111]", "[2001:4860:4860::8888]", "[2606:4700:4700::aaaa]", "[2a00:1450:4001:82a::200e]")
	if len(legitimate) < 100 {
		t.Fatalf("only %d URLs", len(legitimate))
	}
	for raw, want := range legitimate {
		asked = ""
		res, err := s.fetch(raw)
		if err != nil || res["body"] != "ok" {
			t.Errorf("%.100s is blocked: %v, %v", raw, res, err)
			continue
		}
		if want == "" {
			want = strings.ToLower(strings.TrimPrefix(strings.ToLower(raw), "http://"))
			if end := strings.IndexAny(want, "/?#"); end >= 0 {
				want = want[:end]
			}
		}
		if name := strings.TrimSuffix(asked, ":80"); name != strings.TrimSuffix(want, ":80") {
			t.Errorf("%.100s: the server was asked for %q, want %q", raw, asked, want)
		}
	}
	if s.connections() == 0 || len(s.refusals) != 0 {
		t.Errorf("%d refusals", len(s.refusals))
	}
	t.Logf("%d URLs", len(legitimate))
}

// TestNamesThatLookLikeOthers are written in letters that turn into others on the
// way: they are refused, not turned.
func TestNamesThatLookLikeOthers(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", "http://１２７.0.0.1/", "http://127。0。0。1/", "http://ﬁle.example.org/", "http://api.example.com\u200b/", "http://a\u00adpi.example.com/", "http://ａpi.example.com/",
		"http://bu\u0308cher.example.org/", "http://①.example.org/", "http://℀.example.org/", "http://ex\u202eample.org/", "http://user@bücher.example.org/", "http://bücher%2eexample.org/", "http://[bücher]/",
	} {
		u, err := egress.ParseURL(raw)
		if code := plugin.CodeOf(err); code != plugin.CodeEgressDenied && code != plugin.CodeInvalidInput {
			t.Errorf("%q: %v, %v", raw, u, err)
		}
	}
}
