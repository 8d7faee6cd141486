package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// everyone is what any program may read of the machine: how its libraries are
// found, which of several that do the same is meant (links, as Debian has them:
// awk, libblas.so.3), the time zone, the locales, and what ports, protocols and
// kinds of files are called.
var everyone = []string{
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime", "/usr/share/zoneinfo", "/usr/lib/locale",
	"/etc/services", "/etc/protocols", "/etc/ethertypes", "/etc/mime.types",
}

// otherUsers own what a plugin sees and does not own, under root and under others.
const otherUsers = "root:x:0:0:root:/:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n"

// A view is the root that a program sees, and what of it it may use.
type view struct {
	nodes map[string]wire.Node
	empty map[string]bool // directories that show nothing of their own
	own   []string        // directories within those that may be shown all the same
}

// viewOf plans the root for a spec. Each path that is asked for is there under
// its own name, links on the way to it included, and nothing else is.
func viewOf(spec Spec, uid, gid int) (nodes []wire.Node, read []string, err error) {
	v := &view{nodes: map[string]wire.Node{}, empty: map[string]bool{}}
	scratch, err := filepath.EvalSymlinks(spec.Scratch)
	if err != nil {
		return nil, nil, fmt.Errorf("scratch: %w", err)
	}
	v.put(wire.Node{Kind: "work", Path: "/tmp", To: "tmp", Dir: true})
	v.put(wire.Node{Kind: "dev", Path: "/dev", Dir: true})
	v.put(wire.Node{Kind: "proc", Path: "/proc", Dir: true})
	v.put(wire.Node{Kind: "text", Path: "/etc/passwd", To: fmt.Sprintf("plugin:x:%d:%d:plugin:%s:/bin/false\n%s", uid, gid, scratch, otherUsers)})
	v.put(wire.Node{Kind: "text", Path: "/etc/group", To: fmt.Sprintf("plugin:x:%d:\nroot:x:0:\nnogroup:x:65534:\n", gid)})
	v.put(wire.Node{Kind: "text", Path: "/etc/hosts", To: "127.0.0.1 localhost " + wire.HostName + "\n::1 localhost\n"})
	for _, path := range spec.Hide {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			v.empty[real] = true
		}
	}
	for _, path := range spec.Own {
		if real, err := filepath.EvalSymlinks(path); err == nil && !v.empty[real] {
			v.own = append(v.own, real)
		}
	}
	for _, path := range everyone {
		if real, err := v.show(path); err == nil {
			read = append(read, real)
		}
	}
	for _, path := range spec.Read {
		real, err := v.show(path)
		if err != nil {
			return nil, nil, err
		}
		read = append(read, real)
	}
	for _, path := range spec.Named {
		if err := v.mayShow(path); err != nil {
			return nil, nil, err
		}
		real, err := v.show(path)
		if err != nil {
			return nil, nil, err
		}
		read = append(read, real)
	}
	for _, file := range spec.Artifacts {
		real, err := v.show(file.Path)
		if err != nil {
			return nil, nil, err
		}
		node := v.nodes[real]
		node.Device, node.Inode = file.Device, file.Inode
		v.put(node)
		read = append(read, real)
	}
	v.close()
	v.put(wire.Node{Kind: "work", Path: scratch, To: "scratch", Dir: true})
	if scratch != filepath.Clean(spec.Scratch) {
		_ = v.walk(spec.Scratch, 0)
	}
	return v.ordered(), read, nil
}

func (v *view) put(n wire.Node) { v.nodes[n.Path] = n }

// show puts what is at path into the view, and returns where it really is.
func (v *view) show(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s is not an absolute path", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if real == "/" {
		return "", errors.New("the whole root cannot be shown to a plugin")
	}
	for _, taken := range []string{"/proc", "/dev", "/sys"} {
		if real == taken || strings.HasPrefix(real, taken+"/") {
			return "", fmt.Errorf("%s is of the system and cannot be shown to a plugin", path)
		}
	}
	if err := v.walk(path, 0); err != nil {
		return "", err
	}
	if !v.empty[real] { // what is in it may still be shown by name
		v.put(wire.Node{Kind: "bind", Path: real, Dir: info.IsDir()})
	}
	return real, nil
}

// mayShow refuses a path that a plugin's own files named and that leads into a
// hidden directory, by its name or by its links.
func (v *view) mayShow(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for hidden := range v.empty {
		if name := filepath.Clean(path); !inside(real, hidden) && !inside(name, hidden) {
			continue
		}
		if !slices.ContainsFunc(v.own, func(own string) bool { return inside(real, own) }) {
			return fmt.Errorf("%s lies in %s, which is shown to no plugin", path, hidden)
		}
	}
	return nil
}

// close covers each hidden directory that lies in one that is shown.
func (v *view) close() {
	for hidden := range v.empty {
		for dir := filepath.Dir(hidden); dir != "/"; dir = filepath.Dir(dir) {
			if n, ok := v.nodes[dir]; ok && n.Kind == "bind" {
				v.put(wire.Node{Kind: "empty", Path: hidden, Dir: true})
				break
			}
		}
	}
}

// inside reports whether path is dir, or in it.
func inside(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// walk puts the links on the way to path into the view.
func (v *view) walk(path string, depth int) error {
	if depth > 40 {
		return fmt.Errorf("%s: too many links", path)
	}
	at := "/"
	parts := strings.Split(strings.Trim(filepath.Clean(path), "/"), "/")
	for i, part := range parts {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		to, err := os.Readlink(at)
		if err != nil {
			return err
		}
		v.put(wire.Node{Kind: "link", Path: at, To: to})
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(at), to)
		}
		return v.walk(filepath.Join(append([]string{to}, parts[i+1:]...)...), depth+1)
	}
	return nil
}

// ordered returns the nodes, what contains others first. What is inside a
// directory that is shown anyway needs no node of its own.
func (v *view) ordered() []wire.Node {
	var nodes []wire.Node
	for _, n := range v.nodes {
		if n.Kind == "bind" || n.Kind == "link" || n.Kind == "text" {
			if above, ok := v.above(n.Path); ok && above.Kind == "bind" {
				continue
			}
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b wire.Node) int {
		// Links first: a link may lead to where something is put by its real path.
		return cmp.Or(cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")), cmp.Compare(a.Path, b.Path))
	})
	return nodes
}

// above returns the nearest node that path lies in.
func (v *view) above(path string) (wire.Node, bool) {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if n, ok := v.nodes[dir]; ok {
			return n, true
		}
	}
	return wire.Node{}, false
}
