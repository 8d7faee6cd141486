package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	runtimecontract "github.com/mortise-dev/mortise/internal/catalog/contract/runtime"
	"github.com/mortise-dev/mortise/internal/catalog/pack"
)

// bind takes up the plugins of the runtime protocol that the configuration
// names. They are always active and in no catalog. Their programs are looked
// at when they are first used, and need not be there.
func (r *Registry) bind(bindings []runtimecontract.Binding) error {
	var problems contract.Problems
	ix := r.index.Load()
	for _, b := range bindings {
		m, err := runtimecontract.Bind(b)
		var wrong contract.Problems
		switch {
		case errors.As(err, &wrong):
			problems = append(problems, wrong...)
			continue
		case err != nil:
			return err
		case len(ix.plugins[fold(m.Name)]) > 0:
			problems = append(problems, contract.Problem{Pointer: "/plugin_id", Reason: fmt.Sprintf("%s is bound twice, letter case aside", m.Name)})
			continue
		}
		manifest, err := json.Marshal(m)
		if err != nil {
			return err
		}
		terms, err := json.Marshal(b)
		if err != nil {
			return err
		}
		p := findProgram(m.Runner.Command)
		made, err := newRelease(Record{
			Name: m.Name, Version: m.Version, Path: p.dir(), Manifest: manifest,
			State: Active, RegisteredAt: r.now().UTC(), Source: SourceConfig,
		}, liveBinding(m.Runner.Command, terms))
		if err != nil {
			return err
		}
		ix = ix.with(&version{release: made, state: Active})
	}
	if len(problems) > 0 {
		return fmt.Errorf("reading the bindings of the configuration: %w", problems)
	}
	r.index.Store(ix)
	return nil
}

// A program is what a command comes down to: the files that it names.
type program struct {
	command []string
	found   string   // the path of the program itself; "" if there is none
	scripts []string // arguments that are files, by their absolute paths
}

func findProgram(command []string) program {
	p := program{command: command}
	if path, err := exec.LookPath(command[0]); err == nil {
		p.found = path
	}
	for _, arg := range command[1:] {
		if !filepath.IsAbs(arg) {
			continue
		}
		if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
			p.scripts = append(p.scripts, arg)
		}
	}
	return p
}

// files returns those that are the plugin's own. An interpreter is the
// machine's, as it is for an installed plugin, where it is given a script.
func (p program) files() []string {
	switch {
	case len(p.scripts) == 0 && p.found == "":
		return nil
	case len(p.scripts) == 0:
		return []string{p.found}
	case filepath.IsAbs(p.command[0]) && p.found != "":
		return append([]string{p.found}, p.scripts...)
	default:
		return p.scripts
	}
}

// dir is where the plugin is at home.
func (p program) dir() string {
	switch {
	case len(p.scripts) > 0:
		return filepath.Dir(p.scripts[0])
	case p.found != "":
		return filepath.Dir(p.found)
	case filepath.IsAbs(p.command[0]):
		return filepath.Dir(p.command[0])
	default:
		return ""
	}
}

// stamp tells whether the files may have changed.
func (p program) stamp() stamp {
	var files []file
	for _, path := range p.files() {
		if info, err := os.Stat(path); err == nil {
			files = append(files, file{path, info})
		}
	}
	return stampOf(files)
}

// digest hashes the files and the terms they are bound on.
func (p program) digest(ctx context.Context, terms []byte) (string, error) {
	form, err := canon.Form(terms)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "binding %s\n", form)
	for _, path := range p.files() {
		content, err := hashFile(ctx, path)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil {
			content = "unreadable" // launching it will say why
		}
		fmt.Fprintf(sum, "%s %q\n", content, path)
	}
	return digestPrefix + hex.EncodeToString(sum.Sum(nil)), nil
}

func hashFile(ctx context.Context, path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, errChanged)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, pack.Until(ctx, io.LimitReader(f, pack.MaxBytes))); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// liveBinding follows the programs of a binding.
func liveBinding(command []string, terms []byte) *live {
	l := newLive()
	l.look = func(ctx context.Context, now *version) (*release, error) {
		p := findProgram(command)
		seen := p.stamp()
		if seen == l.stamp {
			return nil, nil
		}
		digest, err := p.digest(ctx, terms)
		if err != nil {
			return nil, fmt.Errorf("hashing the program of %s: %w", now.record.Name, err)
		}
		l.stamp = seen
		if digest == now.record.Digest {
			return nil, nil
		}
		record := now.record
		record.Digest, record.Path = digest, p.dir()
		return newRelease(record, l)
	}
	return l
}
