package chain_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/plugin"
)

func entry() plugin.Entry {
	return plugin.Entry{
		Chain: 1, Seq: 7, At: time.UnixMicro(1770091506789012).UTC(), Tenant: "t", Kind: "call.failed", Subject: "s", Principal: "user:ada",
		Body: []byte(`{"a":1}`), Prev: strings.Repeat("0f", 32),
	}
}

// What was hashed and signed once is verified for ever: these values are a
// format, and a change of them is a new version of it.
func TestFormatIsForEver(t *testing.T) {
	e := entry()
	key := chain.Key(bytes.Repeat([]byte{1}, 32))
	row := chain.Head{ID: 1, Seq: 7, Head: e.Prev}
	for _, test := range []struct{ what, got, want string }{
		{"hash", chain.Hash(&e), "cc80235b05420cfdb2eff505c8705e3faa67b7b03338dd989270f8853488046e"},
		{"head", key.Sign(row), "2e1b7cd7e0b8249ef281d10940532758d9c5c4a4d274451bc97df0742a12d7bb"},
		{"key", key.ID(), "0b6ac51dba6a218e2d49427df33347ede6b6d94d33b87e81fcd5952e0f33af1d"},
		{"anchor", key.Anchor(row).MAC, "2da5470aebbc85df3760579b852b6d189f679b122202e4d68cc1e44256e8ca9d"},
	} {
		if test.got != test.want {
			t.Errorf("%s is %s, want %s", test.what, test.got, test.want)
		}
	}
}

func TestEveryFieldIsHashed(t *testing.T) {
	seen := make(map[string]string)
	for name, change := range map[string]func(*plugin.Entry){
		"nothing":   func(*plugin.Entry) {},
		"chain":     func(e *plugin.Entry) { e.Chain++ },
		"seq":       func(e *plugin.Entry) { e.Seq++ },
		"at":        func(e *plugin.Entry) { e.At = e.At.Add(time.Microsecond) },
		"tenant":    func(e *plugin.Entry) { e.Tenant = "u" },
		"kind":      func(e *plugin.Entry) { e.Kind = "call.unknown" },
		"subject":   func(e *plugin.Entry) { e.Subject = "" },
		"principal": func(e *plugin.Entry) { e.Principal += " " },
		"body":      func(e *plugin.Entry) { e.Body = []byte(`{"a": 1}`) },
		"prev":      func(e *plugin.Entry) { e.Prev = "" },
		"border":    func(e *plugin.Entry) { e.Tenant, e.Kind = "tcall", ".failed" },
	} {
		e := entry()
		change(&e)
		hash := chain.Hash(&e)
		if other, ok := seen[hash]; ok {
			t.Errorf("changing %s and changing %s give one hash", name, other)
		}
		seen[hash] = name
	}
	e := entry()
	e.Hash, e.At = "x", e.At.Add(time.Nanosecond)
	if seen[chain.Hash(&e)] != "nothing" {
		t.Error("the hash itself, or less than a microsecond, is hashed")
	}
}

func TestSignatures(t *testing.T) {
	key, other := chain.Key{1}, chain.Key{2}
	row := chain.Head{ID: 1, Seq: 7, Head: "h"}
	row.MAC = key.Sign(row)
	if !key.Signed(row) || other.Signed(row) {
		t.Error("a head is signed by its own key and no other")
	}
	for _, change := range []func(*chain.Head){
		func(r *chain.Head) { r.ID++ }, func(r *chain.Head) { r.Seq-- }, func(r *chain.Head) { r.Head = "" }, func(r *chain.Head) { r.MAC = "" },
	} {
		forged := row
		change(&forged)
		if key.Signed(forged) {
			t.Errorf("%+v passes for signed", forged)
		}
	}
	if key.Anchored(&chain.Anchor{Chain: row.ID, Seq: row.Seq, Head: row.Head, MAC: row.MAC}) {
		t.Error("a head's signature passes for an anchor's")
	}
}

func TestCreateKeyRace(t *testing.T) {
	dir := t.TempDir()
	if _, err := chain.ReadKey(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading no key ended with %v", err)
	}
	keys := make(chan *chain.Key)
	for range 8 {
		go func() {
			key, err := chain.CreateKey(dir)
			if err != nil {
				t.Error(err)
			}
			keys <- key
		}()
	}
	want, err := chain.ReadKey(dir)
	for range 8 {
		got := <-keys
		if want == nil {
			want, err = got, nil
		}
		if got == nil || *got != *want {
			t.Errorf("one process has another key: %v", err)
		}
	}
	if key, err := chain.ReadKey(dir); err != nil || *key != *want || strings.Contains(key.String(), string(key[:])) {
		t.Errorf("the key on the disk: %v", err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}

func TestAnchorFile(t *testing.T) {
	dir := t.TempDir()
	if a, err := chain.ReadAnchor(dir); a != nil || err != nil {
		t.Errorf("no anchor is %v, %v", a, err)
	}
	key := chain.Key{1}
	want := key.Anchor(chain.Head{ID: 1, Seq: 7, Head: "h"})
	if err := chain.WriteAnchor(dir, want); err != nil {
		t.Fatal(err)
	}
	if got, err := chain.ReadAnchor(dir); err != nil || *got != *want || !key.Anchored(got) {
		t.Errorf("the anchor is %+v, %v, want %+v", got, err, want)
	}
	second := key.Anchor(chain.Head{ID: 2, Seq: 1, Head: "h"})
	if err := chain.WriteAnchor(dir, second); err != nil {
		t.Fatal(err)
	}
	if all, err := chain.ReadAnchors(dir); err != nil || len(all) != 2 || *all[0] != *want || *all[1] != *second {
		t.Errorf("the anchors are %v, %v", all, err)
	}
	for _, text := range []string{"", "{}x", `{"seq":1,"seq":2}`, `{"sequence":1}`} {
		if err := os.WriteFile(filepath.Join(dir, chain.AnchorFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := chain.ReadAnchor(dir); err == nil {
			t.Errorf("%q passes for an anchor", text)
		}
	}
}
