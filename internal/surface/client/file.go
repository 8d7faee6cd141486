package client

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// checked returns the bytes of an answer, which are held against their digest: where they are
// others, the end of them is an error.
func checked(res *http.Response) (io.ReadCloser, error) {
	digest := res.Header.Get("Repr-Digest")
	text, found := strings.CutPrefix(digest, "sha-256=:")
	want, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(text, ":"))
	if !found || err != nil || len(want) != sha256.Size {
		res.Body.Close()
		return nil, plugin.Errorf(plugin.CodeUnavailable, "the file came without its digest")
	}
	return &digested{ReadCloser: res.Body, sum: sha256.New(), want: string(want)}, nil
}

type digested struct {
	io.ReadCloser
	sum  hash.Hash
	want string
}

// Read implements [io.Reader].
func (d *digested) Read(b []byte) (int, error) {
	n, err := d.ReadCloser.Read(b)
	d.sum.Write(b[:n])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return n, plugin.Errorf(plugin.CodeInternal, "the file ended before it was whole: it was changed since it was registered, or the host went away")
	}
	if err == io.EOF && string(d.sum.Sum(nil)) != d.want {
		return n, plugin.Errorf(plugin.CodeInternal, "what came is not the file that was registered: its digest is another")
	}
	return n, err
}

func number(n int) string { return strconv.Itoa(n) }
