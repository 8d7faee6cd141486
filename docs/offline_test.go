package docs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNothingIsDownloaded writes, registers, enables, checks and runs a plugin of
// each language that is interpreted, with nothing on the PATH that could install
// anything, proxies that lead nowhere and, where the machine allows it, no
// network at all.
func TestNothingIsDownloaded(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	languages := []string{"command"}
	for _, program := range []string{"sh", "sed"} {
		if err := linkProgram(tools, program); err != nil {
			t.Skipf("not run: %v", err)
		}
	}
	for program, language := range map[string]string{"python3": "python", "node": "ts"} {
		if err := linkProgram(tools, program); err != nil {
			t.Logf("without %s: %v", language, err)
			continue
		}
		languages = append(languages, language)
	}
	dir, home := t.TempDir(), t.TempDir()
	const nowhere = "http://127.0.0.1:9"
	env := []string{
		"PATH=" + tools, "HOME=" + dir, "MORTISE_HOME=" + home, "GOPROXY=off", "PIP_NO_INDEX=1", "npm_config_offline=true",
		"http_proxy=" + nowhere, "https_proxy=" + nowhere, "HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere,
	}
	cage := noNetwork()
	if cage == nil {
		t.Log("network namespaces are not allowed here: only proxies and the PATH keep the network away")
	}
	mortise := func(args ...string) {
		t.Helper()
		argv := append(append([]string{}, cage...), append([]string{filepath.Join(binary, "mortise")}, args...)...)
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("mortise %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for _, language := range languages {
		name := "hello_" + language
		mortise("new", name, "--lang", language, "--no-register")
		mortise("check", name)
		mortise("plugins", "register", name)
		mortise("run", name, "--set", "name=Ada")
	}
	mortise("ledger", "verify")
}

// linkProgram puts the real program of that name into dir.
func linkProgram(dir, name string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	// A version manager's script would need its own tools: ask for what is behind it.
	ask := map[string][]string{"python3": {"-c", "import sys; print(sys.executable)"}, "node": {"-p", "process.execPath"}}[name]
	if ask != nil {
		out, err := exec.Command(path, ask...).Output()
		if err != nil {
			return err
		}
		path = strings.TrimSpace(string(out))
	}
	if !filepath.IsAbs(path) {
		return errors.New(name + " does not say where it is")
	}
	return os.Symlink(path, filepath.Join(dir, name))
}

// noNetwork returns what runs a command without any network, nil if that is
// not allowed here.
func noNetwork() []string {
	path, err := exec.LookPath("unshare")
	if err != nil || exec.Command(path, "-rn", "true").Run() != nil {
		return nil
	}
	return []string{path, "-rn"}
}
