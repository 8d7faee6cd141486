// Package contract_test adds a contract to a host, which is one folder and nothing
// else.
package contract_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/surface/cli"
	"github.com/mortise-dev/mortise/plugin"
	mortise "github.com/mortise-dev/mortise/sdk/go"
	_ "github.com/mortise-dev/mortise/test/contract/testdata/toy"
)

type words struct {
	Text string `json:"text"`
}

// The test binary is the code of the toy too: started with the argument "toy".
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "toy" {
		p := mortise.New("parrot", "1.0.0")
		mortise.Tool(p, "say", "Say it.", func(_ *mortise.Call, in words) (string, error) { return in.Text + "!", nil })
		mortise.Tool(p, "sing", "Sing it.", func(_ *mortise.Call, in words) (string, error) { return "la " + in.Text, nil })
		p.Run()
		return
	}
	os.Exit(m.Run())
}

// parrot writes a plugin of the toy contract.
func parrot(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "toy.txt"), []byte("toy: parrot\nprogram: "+self+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// host runs do in a host with the data directory home.
func host(t *testing.T, home string, do func(a *app.App)) {
	t.Helper()
	a, err := app.Open(t.Context(), app.Options{Home: home, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	do(a)
}

func call(t *testing.T, a *app.App, operation, input string) (plugin.Result, error) {
	t.Helper()
	return a.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: operation, Input: json.RawMessage(input)})
}

func TestAContractIsOneFolder(t *testing.T) {
	home := t.TempDir()
	host(t, home, func(a *app.App) {
		report, err := a.Registry.Register(t.Context(), parrot(t), registry.RegisterOptions{Enable: true})
		if err != nil || len(report.Registered) != 1 || report.Registered[0].NotEnabled != nil {
			t.Fatalf("%+v, %v", report, err)
		}
		if res, err := call(t, a, "parrot/say", `{"text":"hi"}`); err != nil || string(res.Data) != `"hi!"` {
			t.Errorf("got %s, %v", res.Data, err)
		}
		facts(t, a)
	})
	host(t, home, func(a *app.App) { facts(t, a) }) // the stored manifest has none, and gets them

	t.Setenv("MORTISE_HOME", home)
	for _, c := range []struct{ do, want string }{{"sing", `{"toy":"la hi"}`}, {"say", `{"toy":"hi!"}`}} {
		var out, errs bytes.Buffer
		status := cli.Main([]string{"run", "--json", "--envelope", "toy", "parrot", "--set", "do=" + c.do, "--set", "text=hi"}, strings.NewReader(""), &out, &errs)
		var got bytes.Buffer
		if err := json.Compact(&got, out.Bytes()); err != nil || status != 0 || got.String() != c.want {
			t.Errorf("%s: status %d, %s%s", c.do, status, out.String(), errs.String())
		}
	}
}

// facts tries what the core knows of the contract.
func facts(t *testing.T, a *app.App) {
	t.Helper()
	if _, err := call(t, a, "parrot/say", `{"text":"`+strings.Repeat("x", 64)+`"}`); plugin.CodeOf(err) != plugin.CodeInputTooLarge {
		t.Errorf("an input above the limit of the contract: %v", err)
	}
	if _, err := call(t, a, "parrot/say", `{"text":"hi","_host":{}}`); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("an input that speaks for the host: %v", err)
	}
}

// TestFactsAreNotStored: what is stored, and its digest, stay as they are whatever
// facts there come to be, and a manifest of an older release gets them all.
func TestFactsAreNotStored(t *testing.T) {
	for _, c := range contract.All() {
		f, has := c.(contract.Facter)
		if !has {
			continue
		}
		stored := []byte(`{"name":"p","version":"1.0.0","dialect":"` + c.Name() + `","runner":{"kind":"process","protocol":"2"},"isolation":"tenant","operations":null}`)
		m, err := contract.Decode(stored)
		if err != nil || m.Contract != f.Facts() || m.Contract == (plugin.Contract{}) {
			t.Errorf("%s: %+v, %v", c.Name(), m, err)
		}
		if again, err := json.Marshal(m); err != nil || !bytes.Equal(again, stored) {
			t.Errorf("%s is stored as %s, %v", c.Name(), again, err)
		}
	}
}
