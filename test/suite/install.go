package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// debian has the Debian package of each program that parts need.
var debian = map[string]string{
	"python3": "python3", "node": "nodejs", "npm": "npm", "chromium": "chromium", "cc": "gcc", "postgres": "postgresql",
	"tshark": "tshark", "minisign": "minisign",
}

// install makes sure that a need of a part is met: a program, or with the prefix
// "npm:" the packages of a directory with a package-lock.json. It installs a
// missing program with apt-get if it is root. Otherwise it returns an error that
// wraps errNotRun and says how to install the program.
func (e *environment) install(j *job, need string) error {
	e.mu.Lock()
	err, known := e.prepared[need]
	e.mu.Unlock()
	if known {
		return err
	}
	if dir, ok := strings.CutPrefix(need, "npm:"); ok {
		err = e.installModules(j, dir)
	} else {
		err = e.installProgram(j, need)
	}
	e.mu.Lock()
	e.prepared[need] = err
	e.mu.Unlock()
	return err
}

func (e *environment) installModules(j *job, dir string) error {
	for _, program := range []string{"node", "npm"} {
		if err := e.install(j, program); err != nil {
			return err
		}
	}
	lock, err := os.Stat(filepath.Join(e.root, dir, "package-lock.json"))
	if err != nil {
		return err
	}
	// npm writes this file last.
	if done, err := os.Stat(filepath.Join(e.root, dir, "node_modules", ".package-lock.json")); err == nil && !done.ModTime().Before(lock.ModTime()) {
		return nil
	}
	j.say("installing the npm packages of " + dir)
	if err := j.command(dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
		return fmt.Errorf("the npm packages of %s could not be installed, run `npm ci` there: %w: %w", dir, err, errNotRun)
	}
	return nil
}

func (e *environment) installProgram(j *job, name string) error {
	if found(name) {
		return nil
	}
	pkg := debian[name]
	hint := fmt.Errorf("%s is not installed, run `apt-get install %s`: %w", name, pkg, errNotRun)
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 || pkg == "" {
		return hint
	}
	j.say("installing " + pkg)
	quiet := []string{"DEBIAN_FRONTEND=noninteractive"}
	err := j.command(".", quiet, "apt-get", "install", "-y", "-qq", pkg)
	if err != nil { // there may be no package lists yet
		err = errors.Join(j.command(".", quiet, "apt-get", "update", "-qq"), j.command(".", quiet, "apt-get", "install", "-y", "-qq", pkg))
	}
	if err != nil || !found(name) {
		return hint
	}
	return nil
}

// found reports whether a program is on the PATH, under one of its names.
func found(name string) bool {
	names := []string{name}
	switch name {
	case "chromium":
		names = append(names, "google-chrome", "chromium-browser")
	case "cc":
		names = append(names, "gcc")
	case "postgres":
		if matches, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres"); len(matches) > 0 {
			return true
		}
	}
	for _, n := range names {
		if _, err := exec.LookPath(n); err == nil {
			return true
		}
	}
	return false
}
