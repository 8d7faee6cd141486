package cli_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"
)

// plainBuild builds the host as go build and go install do it, without the
// launcher that make build puts there.
func plainBuild(t *testing.T, dir string) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	text := fmt.Sprintf(`{"Replace":{%q:""}}`, filepath.Join(root, "internal", "runtime", "sandbox", "bin", "cage"))
	if err := os.WriteFile(overlay, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "mortise")
	cmd := exec.Command("go", "build", "-overlay", overlay, "-trimpath", "-ldflags=-s -w", "-o", program, "./cmd/mortise")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cmp.Or(os.Getenv("MORTISE_TEST_CGO"), "0")) // 1 takes minutes the first time
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return program
}

// plugins are a tool and an operator that say whether they can read a file of the
// host.
var plugins = map[string]string{"look": "@plugin.tool", "act": `@plugin.operator(effects=["db_write"])`}

const lookAround = `from mortise import Plugin

plugin = Plugin("NAME", version="1.0.0")

KIND
def NAME() -> dict:
    """Look around."""
    try:
        open("/etc/hostname").read()
        return {"outside": True}
    except OSError:
        return {"outside": False}

plugin.run()
`

// A place is a directory with a plugin and a data directory, all of one user's.
type place struct {
	program, dir string
	uid          int
}

func newPlace(t *testing.T, program string, uid int) place {
	t.Helper()
	p := place{program, filepath.Join(filepath.Dir(program), fmt.Sprint(uid)), uid}
	if err := os.MkdirAll(filepath.Join(p.dir, "home"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, kind := range plugins {
		text := strings.NewReplacer("NAME", name, "KIND", kind).Replace(lookAround)
		if err := os.WriteFile(filepath.Join(p.dir, name+".py"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{p.dir, filepath.Join(p.dir, "home")} {
		if err := os.Chown(path, uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// run calls a plugin under a configuration, behind what is put before the
// command, and returns its answer and what it said.
func (p place) run(t *testing.T, configuration, name string, before ...string) (outside any, said string, err error) {
	t.Helper()
	text := "policy: {allow: [{}, {effects: ['*']}]}\n" + configuration
	if err := os.WriteFile(filepath.Join(p.dir, "home", "mortise.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(before), p.program, "run", "./"+name+".py", "--json")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = p.dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "MORTISE") }),
		"MORTISE_HOME="+filepath.Join(p.dir, "home"), "HOME="+p.dir)
	if p.uid != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(p.uid), Gid: uint32(p.uid)}}
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var answer struct {
		Data struct {
			Outside any `json:"outside"`
		} `json:"data"`
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(out, &answer)
	return answer.Data.Outside, errs.String() + answer.Error.Code + ": " + answer.Error.Message, err
}

// A host that was built without the launcher is its own: its plugins are in a
// complete sandbox, or none is started, unless the configuration says so, and
// then each run says what is missing.
func TestAPlainBuildRunsPluginsInACompleteSandbox(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	dir, err := os.MkdirTemp("/tmp", "mortise-plain-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := plainBuild(t, dir)
	if os.Getuid() == 0 {
		outside, said, err := newPlace(t, program, 0).run(t, "", "act")
		if err != nil || outside != false {
			t.Errorf("as root it came to %v %v %s", outside, err, said)
		}
	}
	p := newPlace(t, program, max(os.Getuid(), 65534))
	outside, said, err := p.run(t, "", "act")
	if err != nil || outside != false {
		t.Errorf("it came to %v %v %s", outside, err, said)
	}
	for _, tool := range []string{"unshare", "setpriv"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("there is no " + tool + " to take a wall away with")
		}
	}
	without := []string{"unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c",
		`echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps -all --inh-caps -all "$@"`, "sh"}
	for configuration, sees := range map[string]any{"": nil, "sandbox: required\n": nil, "sandbox: best-effort\n": false, "sandbox: off\n": true} {
		for plugin := range plugins {
			if plugin == "look" && configuration != "" {
				continue // one of each kind where the configuration says nothing
			}
			outside, said, err := p.run(t, configuration, plugin, without...)
			name := strings.TrimSpace(configuration) + " " + plugin
			if sees == nil {
				for _, want := range []string{"isolation_unavailable: ", "user namespace", "sysctl user.max_user_namespaces=", "mortise doctor", "sandbox: best-effort"} {
					if err == nil || outside != nil || !strings.Contains(said, want) {
						t.Errorf("%s: it came to %v %v, and %q is not in %s", name, outside, err, want, said)
					}
				}
				continue
			}
			if err != nil || outside != sees || strings.Count(said, "mortise: sandbox") != 1 {
				t.Errorf("%s: it came to %v %v, and says %s", name, outside, err, said)
			}
		}
	}
}
