package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// What is read in any pieces is refused if a secret is in it, in any spelling, and
// passed on unchanged if there is none.
func TestAReaderFindsSecretsInPieces(t *testing.T) {
	t.Parallel()
	const value = "correct horse/battery+staple"
	s := secret.NewScrubber()
	s.Know(value)
	padding := strings.Repeat("nothing of interest, ", 10_000)
	for name, spelled := range map[string]string{
		"as it is": value, "base64": base64.StdEncoding.EncodeToString([]byte(value)), "hexadecimal": hex.EncodeToString([]byte(value)), "percent": url.QueryEscape(value),
	} {
		for how, cut := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "by bytes": iotest.OneByteReader, "by halves": iotest.HalfReader} {
			_, err := io.Copy(io.Discard, s.Reader(cut(strings.NewReader(padding+spelled+padding)), "report.txt"))
			if plugin.CodeOf(err) != plugin.CodeInvalidOutput || strings.Contains(err.Error(), value) {
				t.Errorf("%s, %s: %v", name, how, err)
			}
			got, err := io.ReadAll(s.Reader(cut(strings.NewReader(padding+spelled[:len(spelled)-1]+padding)), "report.txt"))
			if name == "as it is" && (err != nil || !bytes.Equal(got, []byte(padding+spelled[:len(spelled)-1]+padding))) {
				t.Errorf("%s, without its end: %v", how, err)
			}
		}
	}
	if _, err := io.Copy(io.Discard, secret.NewScrubber().Reader(strings.NewReader(value), "x")); err != nil {
		t.Error(err)
	}
}
