package environment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/plugin"
)

// An index is one of the simple form, in HTML or JSON.
type index struct {
	base   *url.URL
	hosts  []string // host:port or host, in lower case, the own one first
	client *http.Client
}

const (
	maxPage      = 32 << 20 // bytes of the page of one project
	maxRedirects = 5
	simpleJSON   = "application/vnd.pypi.simple.v1+json"
)

// CheckIndex refuses an address that is none of an index: https, or http on this machine,
// without a name and password in it.
func CheckIndex(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return err
	case u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q is no plain address, like https://pypi.org/simple/", u.Redacted())
	case u.Scheme == "https", u.Scheme == "http" && slices.Contains([]string{"127.0.0.1", "::1", "localhost"}, u.Hostname()):
		return nil
	}
	return fmt.Errorf("%q is neither https nor on this machine", address)
}

func newIndex(o Options) (*index, error) {
	if err := CheckIndex(o.Index); err != nil {
		return nil, refused("plugins.environments.index: %w", err)
	}
	base, err := url.Parse(strings.TrimSuffix(o.Index, "/") + "/")
	if err != nil {
		return nil, err
	}
	x := &index{base: base, hosts: []string{strings.ToLower(base.Host)}}
	for _, host := range o.Hosts {
		x.hosts = append(x.hosts, strings.ToLower(host))
	}
	x.client = o.Client
	if x.client == nil {
		x.client = &http.Client{Transport: &http.Transport{TLSHandshakeTimeout: 15 * time.Second, ResponseHeaderTimeout: 30 * time.Second, MaxIdleConnsPerHost: 1}}
	}
	copied := *x.client
	copied.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return errors.New("it leads on and on")
		}
		return x.may(to.URL)
	}
	x.client = &copied
	return x, nil
}

func (x *index) said() string { return x.base.String() }

// may refuses an address that is not of the hosts which the administrator named.
func (x *index) may(u *url.URL) error {
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || x.base.Scheme != "http" || u.Host != x.base.Host), u.User != nil:
		return refused("%s is no address that files are fetched from", u.Redacted())
	case !slices.Contains(x.hosts, strings.ToLower(u.Host)):
		return refused("the index has files on %s, which is not among plugins.environments.hosts", u.Host)
	}
	return nil
}

func (x *index) get(ctx context.Context, u *url.URL, accept string) (*http.Response, error) {
	if err := x.may(u); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", "mortise/"+version.Host)
	res, err := x.client.Do(req)
	var known *plugin.Error
	switch {
	case errors.As(err, &known):
		return nil, known
	case err != nil:
		return nil, plugin.Errorf(plugin.CodeUnavailable, "the index does not answer: %w", err)
	case res.StatusCode == http.StatusOK:
		return res, nil
	}
	res.Body.Close()
	if res.StatusCode == http.StatusNotFound {
		return nil, refused("%s has no %s", x.base, u.Path)
	}
	return nil, plugin.Errorf(plugin.CodeUnavailable, "%s answers %s", u.Redacted(), res.Status)
}

func (x *index) files(ctx context.Context, project string) ([]candidate, error) {
	res, err := x.get(ctx, x.base.JoinPath(project+"/"), simpleJSON+", text/html;q=0.5")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxPage+1))
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "reading the page of %s: %w", project, err)
	}
	if len(raw) > maxPage {
		return nil, refused("the page of %s is larger than %d bytes", project, maxPage)
	}
	form, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if form == simpleJSON {
		return listed(raw, res.Request.URL)
	}
	return linked(raw, res.Request.URL), nil
}

// listed reads a page in JSON.
func listed(raw []byte, at *url.URL) ([]candidate, error) {
	var page struct {
		Files []struct {
			Filename string            `json:"filename"`
			URL      string            `json:"url"`
			Hashes   map[string]string `json:"hashes"`
			Yanked   any               `json:"yanked"`
		} `json:"files"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "the page of the index cannot be read: %w", err)
	}
	var all []candidate
	for _, f := range page.Files {
		to, err := at.Parse(f.URL)
		if err != nil {
			continue
		}
		withdrawn := f.Yanked != nil && f.Yanked != false
		all = append(all, candidate{name: f.Filename, place: to.String(), sha256: strings.ToLower(f.Hashes["sha256"]), yanked: withdrawn})
	}
	return all, nil
}

// linked reads a page in HTML: each link is a file, whose hash is in the fragment.
func linked(raw []byte, at *url.URL) (all []candidate) {
	page := html.NewTokenizer(strings.NewReader(string(raw)))
	for {
		switch page.Next() {
		case html.ErrorToken:
			return all
		case html.StartTagToken, html.SelfClosingTagToken:
			token := page.Token()
			if token.Data != "a" {
				continue
			}
			c := candidate{}
			for _, attribute := range token.Attr {
				switch attribute.Key {
				case "href":
					to, err := at.Parse(attribute.Val)
					if err != nil {
						continue
					}
					if hash, ok := strings.CutPrefix(to.Fragment, "sha256="); ok {
						c.sha256 = strings.ToLower(hash)
					}
					to.Fragment = ""
					c.place, c.name = to.String(), path.Base(to.Path)
				case "data-yanked":
					c.yanked = true
				}
			}
			if c.name != "" {
				all = append(all, c)
			}
		}
	}
}

func (x *index) open(ctx context.Context, c candidate) (io.ReadCloser, error) {
	u, err := url.Parse(c.place)
	if err != nil {
		return nil, refused("%q is no address of a file: %w", c.place, err)
	}
	res, err := x.get(ctx, u, "*/*")
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}
