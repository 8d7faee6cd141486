package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// program is what make build made.
const program = "../../bin/mortise"

// Bounds of the program, a tenth above where it stands: a dependency that passes one is to be weighed
// as docs/adr/0109 does.
const (
	maxSize  = 84_000_000 // bytes
	maxInits = 4_300_000  // bytes that all initialisers of packages allocate
)

func built(t *testing.T) []byte {
	t.Helper()
	raw, err := os.ReadFile(program)
	if err != nil {
		t.Skip("make build has not made the program: ", err)
	}
	return raw
}

// Where a template engine can be reached, methods are called by names that the linker does not know,
// and it keeps every method of every type: a seventh of the program.
func TestNoMethodIsCalledByName(t *testing.T) {
	raw := built(t)
	if bytes.Contains(raw, []byte("text/template.(*state).evalField")) {
		t.Error("the program executes templates; see docs/adr/0109")
	}
	if !bytes.Contains(raw, []byte("github.com/mortise-dev/mortise/internal/surface/cli.Main")) {
		t.Error("the program does not have the names of its functions, so that this test says nothing")
	}
}

func TestTheSizeOfTheProgram(t *testing.T) {
	if n := len(built(t)); n > maxSize {
		t.Errorf("the program has %d bytes, more than %d", n, maxSize)
	}
}

// Initialisers run before every command. What they allocate does not depend on the machine, and
// their time follows from it.
func TestInitialisersAllocateLittle(t *testing.T) {
	built(t)
	cmd := exec.Command(program, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1", "MORTISE_HOME="+t.TempDir())
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatal(err, trace.String())
	}
	all, packages := 0, 0
	for _, m := range regexp.MustCompile(`(?m)^init (\S+) @.* clock, (\d+) bytes`).FindAllStringSubmatch(trace.String(), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		all, packages = all+n, packages+1
		if n > 64_000 && regexp.MustCompile(`^github\.com/mortise-dev/`).MatchString(m[1]) {
			t.Logf("%s allocates %d bytes", m[1], n)
		}
	}
	if packages < 50 || all > maxInits {
		t.Errorf("%d packages allocate %d bytes before main, more than %d", packages, all, maxInits)
	}
}
