package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func checkFormat(j *job) error {
	files, err := j.goFiles()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := j.pipe(".", nil, &out, "gofmt", append([]string{"-l"}, files...)...); err != nil {
		return fmt.Errorf("%w\n%s", err, out.String())
	}
	for name := range strings.Lines(out.String()) {
		j.result.fail(strings.TrimSpace(name), "", "gofmt would change this file; run `gofmt -w "+strings.TrimSpace(name)+"`")
	}
	return nil
}

// goFiles returns the Go files of the repository, deleted ones excepted.
func (j *job) goFiles() ([]string, error) {
	var out bytes.Buffer
	if err := j.pipe(".", nil, &out, "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go"); err != nil {
		return nil, err
	}
	files := strings.Fields(out.String())
	return slices.DeleteFunc(files, func(name string) bool {
		_, err := os.Stat(filepath.Join(j.env.root, name))
		return err != nil
	}), nil
}

func build(j *job) error { return j.command(".", nil, "make", "build") }

func vet(j *job) error { return j.command(".", nil, "go", "vet", "./...") }

func vetBench(j *job) error { return j.command("bench", nil, "go", "vet", "./...") }

// testPython runs the unit tests of everything in Python.
func testPython(j *job) error {
	suites := []struct{ dir, path string }{{"sdk/python/tests", ""}, {"sdk/python/client_tests", ""}}
	tools, err := filepath.Glob(filepath.Join(j.env.root, "plugins", "*", "*", "tests"))
	if err != nil {
		return err
	}
	for _, dir := range tools {
		rel, err := filepath.Rel(j.env.root, dir)
		if err != nil {
			return err
		}
		// Tests of the other plugins are run by package plugins, with a host.
		if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "tool.py")); err == nil {
			suites = append(suites, struct{ dir, path string }{rel, "sdk/python/eventmill:" + filepath.Dir(rel)})
		}
	}
	for i, suite := range suites {
		j.say(fmt.Sprintf("%d of %d: %s", i+1, len(suites), suite.dir))
		if err := j.unittest(suite.dir, suite.path); err != nil {
			return err
		}
	}
	j.result.Detail = fmt.Sprintf("%d suites, %d tests", len(suites), j.result.Passed)
	j.note("the agent frameworks in Python themselves", "nothing is installed with pip; the adapters are tested against the published interfaces")
	return nil
}

var (
	ranTests   = regexp.MustCompile(`(?m)^Ran (\d+) tests?`)
	failedTest = regexp.MustCompile(`(?m)^(?:FAIL|ERROR): (.*)$`)
	skipTest   = regexp.MustCompile(`(?m)^(\S+ \(.*\)).* \.\.\. skipped ['"](.*)['"]$`)
)

// unittest runs the unittest suite in dir, with path as PYTHONPATH if it is not
// empty, and adds its tests to the result.
func (j *job) unittest(dir, path string) error {
	var out bytes.Buffer
	var env []string
	if path != "" {
		env = []string{"PYTHONPATH=" + path}
	}
	err := j.pipe(".", env, io.MultiWriter(&out, j.log), "python3", "-B", "-m", "unittest", "discover", "-v", "-s", dir)
	text := out.String()
	count := 0
	if m := ranTests.FindStringSubmatch(text); m != nil {
		count, _ = strconv.Atoi(m[1])
	}
	for _, m := range skipTest.FindAllStringSubmatch(text, -1) {
		j.note(dir+" "+m[1], m[2])
		count--
	}
	if err == nil {
		j.result.Passed += count
		if count <= 0 {
			return fmt.Errorf("no test ran in %s", dir)
		}
		return nil
	}
	names := failedTest.FindAllStringSubmatchIndex(text, -1)
	for i, m := range names {
		end := len(text)
		if i+1 < len(names) {
			end = names[i+1][0]
		}
		j.result.fail(text[m[2]:m[3]], dir, text[m[0]:end])
	}
	if len(names) == 0 || j.ctx.Err() != nil {
		return err
	}
	j.result.Passed += max(0, count-len(names))
	return nil
}

// checkPlugins runs `mortise check` on each set of shipped plugins. The outreach
// set needs a receiver, which TestOutreachKeepsItsContract starts.
func checkPlugins(j *job) error {
	home, err := os.MkdirTemp(j.env.temp, "mortise-shipped-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	sets, err := os.ReadDir(filepath.Join(j.env.root, "plugins"))
	if err != nil {
		return err
	}
	for _, set := range sets {
		if !set.IsDir() || set.Name() == "bin" || set.Name() == "outreach" {
			continue
		}
		j.say(set.Name())
		dir := filepath.Join("plugins", set.Name())
		var out bytes.Buffer
		if err := j.pipe(".", []string{"MORTISE_HOME=" + home}, io.MultiWriter(&out, j.log), "bin/mortise", "check", dir); err != nil {
			j.result.fail("mortise check "+dir, "", out.String()+err.Error())
			continue
		}
		j.result.Passed++
	}
	j.result.Detail = fmt.Sprintf("%d sets", j.result.Passed)
	return nil
}

func testTypeScript(j *job) error { return j.command("sdk/typescript", nil, "npm", "test", "--silent") }

func testTypeScriptClient(j *job) error {
	return j.command("sdk/typescript/client", nil, "npm", "test", "--silent")
}

// testConsole checks the console's types, runs its unit tests and compares what
// is committed of it with what its sources give.
func testConsole(j *job) error {
	for _, script := range []string{"types", "check", "test", "build:check"} {
		j.say("npm run " + script)
		if err := j.command("console", nil, "npm", "run", "--silent", script); err != nil {
			return err
		}
	}
	var out bytes.Buffer
	if err := j.pipe(".", nil, &out, "git", "status", "--porcelain", "console/src/lib/api"); err != nil {
		return err
	}
	if out.Len() > 0 {
		j.result.fail("console/src/lib/api", "", "these files are not what `npm run types` writes; run it in console/ and commit them:\n"+out.String())
	}
	return nil
}

func smokeBrowser(j *job) error {
	return j.command("console", nil, "node", "--test", "--test-name-pattern=one asks by keyboard", "test/browser/approve.test.mjs")
}
