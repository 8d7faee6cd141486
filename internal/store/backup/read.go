package backup

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/go-json-experiment/json"
)

// sealed begins a file that is encrypted.
const sealed = "age-encryption.org/v1\n"

// ErrSealed says that a backup is encrypted and that nothing was given to open
// it with.
var ErrSealed = errors.New("it is encrypted; --identity or --passphrase-file opens it")

// Check reads a backup to its end and returns its manifest if all of it is as
// that says. It writes nothing.
func Check(ctx context.Context, file string, identities ...age.Identity) (Manifest, error) {
	return read(ctx, file, identities, func(Member, io.Reader) error { return nil })
}

// Extract writes the members of a backup that was checked to the directory dir,
// which must be there and empty.
func Extract(ctx context.Context, file, dir string, identities ...age.Identity) (Manifest, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Manifest{}, err
	}
	defer root.Close()
	var dirs []Member
	m, err := read(ctx, file, identities, func(member Member, r io.Reader) error {
		if err := root.MkdirAll(path.Dir(member.Name), 0o700); err != nil {
			return err
		}
		if member.Dir {
			dirs = append(dirs, member)
			return root.MkdirAll(member.Name, 0o700)
		}
		return write(root, member, r)
	})
	if err != nil {
		return m, err
	}
	for _, member := range slices.Backward(dirs) { // what is below one, before it is closed
		if err := root.Chmod(member.Name, member.Mode&0o755|0o500); err != nil {
			return m, err
		}
	}
	return m, nil
}

func write(root *os.Root, m Member, r io.Reader) error {
	f, err := root.OpenFile(m.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Chmod(m.Mode&0o755 | 0o400)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// read goes through a backup. visit may believe nothing before read has returned
// without an error.
func read(ctx context.Context, file string, identities []age.Identity, visit func(Member, io.Reader) error) (m Manifest, err error) {
	f, err := os.Open(file)
	if err != nil {
		return m, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(reader{ctx, f}, 1<<20)
	inner, packed, err := opened(in, identities)
	if err != nil {
		return m, err
	}
	var found []Member
	seen := map[string]bool{} // whether it is a directory
	t := tar.NewReader(packed)
	for {
		header, err := t.Next()
		if err == io.EOF {
			return m, damaged("it ends without its manifest: it was cut off, or is another kind of file")
		}
		if err != nil {
			return m, unread(ctx, err)
		}
		if header.Name == manifestName {
			if m, err = manifest(t, header, found); err != nil {
				return m, unread(ctx, err)
			}
			break
		}
		member, err := memberOf(header, seen)
		if err != nil {
			return m, err
		}
		if len(found) == maxMembers {
			return m, damaged("it has more than %d members", maxMembers)
		}
		if !member.Dir {
			sum := sha256.New()
			source := io.TeeReader(t, sum)
			if err := visit(member, source); err != nil {
				return m, unread(ctx, err)
			}
			if _, err := io.Copy(io.Discard, source); err != nil {
				return m, unread(ctx, err)
			}
			member.SHA256 = hex.EncodeToString(sum.Sum(nil))
		} else if err := visit(member, nil); err != nil {
			return m, err
		}
		found = append(found, member)
	}
	if _, err := t.Next(); err != io.EOF {
		return m, damaged("something follows its manifest")
	}
	// To the end, where the checksums of the layers around it are.
	if n, err := io.Copy(io.Discard, packed); err != nil {
		return m, unread(ctx, err)
	} else if n > 0 {
		return m, damaged("%d bytes follow its end", n)
	}
	if n, err := io.Copy(io.Discard, inner); err != nil {
		return m, unread(ctx, err)
	} else if n > 0 {
		return m, damaged("something follows its end")
	}
	return m, nil
}

// opened takes the layers off: inner is what is compressed.
func opened(in *bufio.Reader, identities []age.Identity) (inner *bufio.Reader, packed *gzip.Reader, err error) {
	inner = in
	if start, _ := in.Peek(len(sealed)); string(start) == sealed {
		if len(identities) == 0 {
			return nil, nil, damaged("%w", ErrSealed)
		}
		plain, err := age.Decrypt(in, identities...)
		if err != nil {
			return nil, nil, damaged("it cannot be decrypted: %w", err)
		}
		inner = bufio.NewReader(plain) // so that what follows the compressed part is seen
	}
	packed, err = gzip.NewReader(inner)
	if err != nil {
		return nil, nil, damaged("it is no backup, or its beginning was changed: %w", err)
	}
	packed.Multistream(false)
	return inner, packed, nil
}

func memberOf(header *tar.Header, seen map[string]bool) (Member, error) {
	name := strings.TrimSuffix(header.Name, "/")
	m := Member{Name: name, Mode: fs.FileMode(header.Mode).Perm(), Size: header.Size, Dir: header.Typeflag == tar.TypeDir}
	if err := checkName(name); err != nil {
		return m, err
	}
	if header.Typeflag != tar.TypeReg && !m.Dir || !m.Dir && name != header.Name {
		return m, damaged("%.100q is neither a file nor a directory", header.Name)
	}
	if _, twice := seen[name]; twice {
		return m, damaged("%.100q is in it twice", name)
	}
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		if dir, is := seen[above]; is && !dir {
			return m, damaged("%.100q is below a file", name)
		}
	}
	seen[name] = m.Dir
	return m, nil
}

// manifest reads the manifest and holds what was found against it.
func manifest(r io.Reader, header *tar.Header, found []Member) (m Manifest, err error) {
	if header.Typeflag != tar.TypeReg || header.Size > maxManifest {
		return m, damaged("its manifest is none")
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, damaged("its manifest cannot be read: %w", err)
	}
	if m.Format != Format {
		return m, damaged("it is a %.60q, and this program reads %q", m.Format, Format)
	}
	for i, f := range found {
		if i >= len(m.Members) || f != m.Members[i] {
			return m, damaged("%.100q is not what the manifest says", f.Name)
		}
	}
	if len(m.Members) > len(found) {
		return m, damaged("%.100q is missing", m.Members[len(found)].Name)
	}
	return m, nil
}

// unread says why a backup could not be read to its end.
func unread(ctx context.Context, err error) error {
	var disk *fs.PathError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrDamaged) || errors.As(err, &disk):
		return err
	}
	return damaged("it was cut off or changed: %w", err)
}
