package egress

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMappedHosts(t *testing.T) {
	t.Parallel()
	g := Grants{Map: map[string]string{"a.example.com": "127.0.0.1:8443", "b.example.com": "10.0.0.7", "c.example.com": "[fd00::1]:99", "d.example.com": "fd00::1"}}
	if err := g.Check(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"a.example.com": "127.0.0.1:8443", "b.example.com": "10.0.0.7:443", "c.example.com": "[fd00::1]:99", "d.example.com": "[fd00::1]:443"} {
		if to, mapped := g.to(name, 443); !mapped || to.String() != want || !g.Mapped(name) {
			t.Errorf("%s: %v, %t", name, to, mapped)
		}
	}
	if g.Mapped("x.a.example.com") || g.Mapped("example.com") {
		t.Error("a host that is not mapped is")
	}
	for address, says := range map[string]string{"localhost:1": "not of the form", "127.0.0.1:0": "not of the form", "fe80::1%lo": "not of the form", "": "not of the form", "127.1": "not of the form"} {
		if err := (Grants{Map: map[string]string{"a.example.com": address}}).Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if err := (Grants{CAFile: "x.pem"}).Check(); err == nil {
		t.Error("authorities for no host")
	}
}

func TestAuthoritiesOfMappedHosts(t *testing.T) {
	t.Parallel()
	if pool, err := (Grants{}).Roots(); pool != nil || err != nil {
		t.Errorf("%v, %v", pool, err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if _, err := (Grants{CAFile: file}).Roots(); err == nil {
		t.Error("a file that is not there")
	}
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Grants{CAFile: file}).Roots(); err == nil || !strings.Contains(err.Error(), "no certificate in PEM") {
		t.Error(err)
	}
}
