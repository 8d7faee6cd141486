package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/pack"
)

const digestPrefix = "sha256:"

// A digest is built from one line for each file of a package, in the order of
// their names: the hash of its content, its size, whether it is executable,
// and its name, which is quoted so that no name can pass for another line.
type digest struct{ lines hash.Hash }

func newDigest() digest { return digest{sha256.New()} }

func (d digest) add(f file, content []byte) {
	mode := "-"
	if f.executable() {
		mode = "x"
	}
	fmt.Fprintf(d.lines, "%x %d %s %s\n", content, f.info.Size(), mode, strconv.Quote(f.name))
}

func (d digest) String() string { return digestPrefix + hex.EncodeToString(d.lines.Sum(nil)) }

// digestOf hashes files of the directory root.
func digestOf(ctx context.Context, root *os.Root, files []file) (string, error) {
	sum := newDigest()
	for _, f := range files {
		content, err := hashIn(ctx, root, f)
		if err != nil {
			return "", err
		}
		sum.add(f, content)
	}
	return sum.String(), nil
}

// hashIn hashes the content of one file of the directory root.
func hashIn(ctx context.Context, root *os.Root, f file) ([]byte, error) {
	opened, err := open(root, f)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	content := sha256.New()
	if err := copyExactly(ctx, content, opened, f); err != nil {
		return nil, err
	}
	return content.Sum(nil), nil
}

// digestDir hashes the package in dir; with all set, nothing is skipped.
func digestDir(ctx context.Context, dir string, all bool) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	files, err := scan(ctx, root.FS(), all)
	if err != nil {
		return "", err
	}
	return digestOf(ctx, root, files)
}

// digestFS hashes a package that is not on disk.
func digestFS(ctx context.Context, tree fs.FS) (string, error) {
	files, err := scan(ctx, tree, false)
	if err != nil {
		return "", err
	}
	sum, buffer := newDigest(), make([]byte, 64<<10)
	for _, f := range files {
		content, err := hashThrough(ctx, buffer, tree, f.name)
		if err != nil {
			return "", err
		}
		sum.add(f, content)
	}
	return sum.String(), nil
}

// hashThrough reads a file through the buffer, and never as a whole: a host does
// this to all that it brings along, at each start. A program that it carries compressed
// gives its digest; when it is installed, it is hashed like any file.
func hashThrough(ctx context.Context, buffer []byte, tree fs.FS, name string) ([]byte, error) {
	file, err := tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if known, ok := file.(interface{ SHA256() [sha256.Size]byte }); ok {
		sum := known.SHA256()
		return sum[:], nil
	}
	sum := sha256.New()
	if _, err := io.CopyBuffer(sum, pack.Until(ctx, file), buffer); err != nil {
		return nil, err
	}
	return sum.Sum(nil), nil
}

// folder is the name of the directory in the store that holds a package.
func folder(digest string) string { return strings.TrimPrefix(digest, digestPrefix) }
