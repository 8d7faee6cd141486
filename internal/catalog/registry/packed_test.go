package registry_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// A member is one file of a package file: a directory where the name ends with /.
type member struct {
	name, content string
	change        func(*zip.FileHeader, *tar.Header)
}

func (m member) headers() (*zip.FileHeader, *tar.Header) {
	z, t := &zip.FileHeader{Name: m.name, Method: zip.Deflate}, &tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.content)), Typeflag: tar.TypeReg}
	z.SetMode(0o644)
	if strings.HasSuffix(m.name, "/") {
		z.SetMode(fs.ModeDir | 0o755)
		z.Method = zip.Store
		t.Typeflag, t.Mode = tar.TypeDir, 0o755
	}
	if m.change != nil {
		m.change(z, t)
	}
	return z, t
}

func zipped(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		header, _ := m.headers()
		f, err := w.CreateHeader(header)
		if err == nil {
			_, err = f.Write([]byte(m.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarred(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		_, header := m.headers()
		err := w.WriteHeader(header)
		if err == nil && header.Size > 0 {
			_, err = w.Write([]byte(m.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sent registers a package file of that name.
func (b *bundle) sent(name string, data []byte, o registry.RegisterOptions) (registry.RegisterReport, string, error) {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.t.Fatal(err)
	}
	report, err := b.Register(b.t.Context(), path, o)
	return report, path, err
}

func TestPackageFilesAreRegistered(t *testing.T) {
	t.Parallel()
	executable := func(z *zip.FileHeader, h *tar.Header) { z.SetMode(0o755); h.Mode = 0o755 }
	members := func(top string) []member {
		return []member{
			{name: top + "manifest.yaml", content: manifest("p", "1.0.0", "x")},
			{name: top + "plugin.py", content: "print()\n"}, {name: top + "bin/", content: ""},
			{name: top + "bin/run", content: "#!/bin/sh\n", change: executable}, {name: top + "naïve.txt", content: strings.Repeat("a", 9000)},
		}
	}
	digests := map[string]bool{}
	for name, data := range map[string][]byte{
		"top.zip": zipped(t, members("")...), "dir.ZIP": zipped(t, members("p-1.0.0/")...),
		"top.tar": tarred(t, append([]member{{name: "./"}}, members("./")...)...), "dir.tar.gz": gzipped(t, tarred(t, members("p/")...)),
		"dir.tgz": gzipped(t, tarred(t, members("p/")...)),
	} {
		b := open(t)
		report, path, err := b.sent(name, data, registry.RegisterOptions{Enable: true})
		if err != nil || len(report.Registered) != 1 {
			t.Errorf("%s: %+v, %v", name, report, err)
			continue
		}
		one := report.Registered[0]
		if one.Source != path || one.State != registry.Active || one.Name != "p" {
			t.Errorf("%s: %+v", name, one)
		}
		if info, err := os.Stat(filepath.Join(one.Path, "bin/run")); err != nil || info.Mode().Perm() != 0o555 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		if names := b.packages(); len(names) != 1 {
			t.Errorf("%s: left behind: %v", name, names)
		}
		digests[one.Digest] = true
	}
	if len(digests) != 1 {
		t.Errorf("the same files have the digests %v", digests)
	}
}

func TestAVersionIsReplacedByForce(t *testing.T) {
	t.Parallel()
	b := open(t)
	files := func(code string) []byte {
		return zipped(t, member{name: "manifest.yaml", content: manifest("p", "1.0.0", "x")}, member{name: "plugin.py", content: code})
	}
	if _, _, err := b.sent("p.zip", files("a"), registry.RegisterOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.sent("p.zip", files("b"), registry.RegisterOptions{}); err == nil || !strings.Contains(err.Error(), "replace it with --force") {
		t.Errorf("got %v", err)
	}
	report, _, err := b.sent("p.zip", files("b"), registry.RegisterOptions{Force: true})
	if err != nil || report.Registered[0].Unchanged {
		t.Errorf("%+v, %v", report, err)
	}
	if names := b.packages(); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
}

// TestHostilePackageFiles is T39: whatever is wrong with a package file, it is
// refused by what is wrong with it, nothing of it is installed, and nothing
// stays.
func TestHostilePackageFiles(t *testing.T) {
	t.Parallel()
	good := []member{{name: "manifest.yaml", content: manifest("p", "1.0.0", "x")}, {name: "plugin.py", content: "print()\n"}}
	with := func(more ...member) []member { return append(append([]member{}, good...), more...) }
	named := func(name string) []member { return with(member{name: name, content: "x"}) }
	link := func(z *zip.FileHeader, h *tar.Header) {
		z.SetMode(fs.ModeSymlink | 0o777)
		h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "/etc/passwd", 0
	}
	both := map[string]struct {
		members []member
		want    string
	}{
		"a name that leads out":             {named("../x"), `"../x" is no name of a file inside a package`},
		"a name that leads out further in":  {named("a/../../x"), `"a/../../x" is no name`},
		"an absolute name":                  {named("/etc/x"), `"/etc/x" is no name`},
		"a backslash":                       {named(`..\x`), "is no name of a file inside a package"},
		"a name beside":                     {named("a//x"), "is no name"},
		"a control character":               {named("a\nb"), "does not work everywhere"},
		"a long name":                       {named(strings.Repeat("a/", 600) + "b"), "longer than 1024 bytes"},
		"a long file name":                  {named(strings.Repeat("a", 256)), "has a part of more than 255 bytes"},
		"a long name of a directory":        {named(strings.Repeat("é", 128) + "/b"), "has a part of more than 255 bytes"},
		"deep directories":                  {named(strings.Repeat("a/", 40) + "b"), "stands deeper than 32 directories"},
		"twice":                             {named("plugin.py"), "plugin.py stands in it twice"},
		"twice but for letter case":         {named("PLUGIN.py"), "the file names plugin.py and PLUGIN.py differ in letter case only"},
		"twice but for a directory's case":  {with(member{name: "lib/a", content: "x"}, member{name: "LIB/b", content: "x"}), "the file names lib and LIB differ in letter case only"},
		"twice but for its Unicode":         {with(member{name: "\u00e9", content: "x"}, member{name: "e\u0301", content: "x"}), "differ in letter case only"},
		"a file that is a directory":        {named("plugin.py/x"), "plugin.py is a file and a directory in it"},
		"a directory that is a file":        {with(member{name: "a/b", content: "x"}, member{name: "a", content: "x"}), "a is a file and a directory in it"},
		"a symbolic link":                   {with(member{name: "l", content: "/etc/passwd", change: link}), "l is neither a file nor a directory"},
		"a device":                          {with(member{name: "d", change: func(z *zip.FileHeader, h *tar.Header) { z.SetMode(fs.ModeDevice | 0o600); h.Typeflag = tar.TypeChar }}), "d is neither a file nor a directory"},
		"no manifest at the top":            {[]member{{name: "a/manifest.yaml", content: manifest("p", "1.0.0", "x")}, {name: "b/x", content: "x"}}, "has 2 files and directories at its top and no manifest.yaml"},
		"nothing":                           {nil, "has 0 files and directories at its top"},
		"a manifest that is not acceptable": {[]member{{name: "manifest.yaml", content: "name: p\n"}}, "manifest.yaml"},
	}
	try := func(name, file string, data []byte, want string) {
		t.Helper()
		b := open(t)
		report, _, err := b.sent(file, data, registry.RegisterOptions{Enable: true})
		if plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, %s: got %+v, %v, want %s", file, name, report, err, want)
		}
		if names := b.packages(); len(names) != 0 {
			t.Errorf("%s, %s: left behind: %v", file, name, names)
		}
	}
	for name, c := range both {
		try(name, "p.zip", zipped(t, c.members...), c.want)
		try(name, "p.tar", tarred(t, c.members...), c.want)
		try(name, "p.tar.gz", gzipped(t, tarred(t, c.members...)), c.want)
	}

	zeros := member{name: "zeros", content: strings.Repeat("\x00", 32<<20)}
	try("a bomb", "p.zip", zipped(t, with(zeros)...), "zeros becomes more than 200 times as large as it was sent")
	try("a bomb", "p.tar.gz", gzipped(t, tarred(t, with(zeros)...)), "it becomes more than 200 times as large as it was sent")
	many := good
	for n := range 20_001 {
		many = append(many, member{name: fmt.Sprintf("f%d", n), change: func(z *zip.FileHeader, _ *tar.Header) { z.Method = zip.Store }})
	}
	try("many files", "p.zip", zipped(t, many...), "at most 20000 files and directories")
	for n := range 65_536 - len(many) {
		many = append(many, member{name: fmt.Sprintf("g%d", n), change: func(z *zip.FileHeader, _ *tar.Header) { z.Method = zip.Store }})
	}
	try("65,536 files", "p.zip", zipped(t, many...), "it is of the long form (zip64)")
	try("many files", "p.tar.gz", gzipped(t, tarred(t, many...)), "at most 20000 files and directories")
	try("a hard link", "p.tar", tarred(t, with(member{name: "l", change: func(_ *zip.FileHeader, h *tar.Header) {
		h.Typeflag, h.Linkname = tar.TypeLink, "plugin.py"
	}})...), "l is neither a file nor a directory")
	whole := tarred(t, good...)
	try("what follows the end", "p.tar", append(bytes.Clone(whole), whole...), "something follows its end")
	try("a second gzip", "p.tar.gz", append(gzipped(t, whole), gzipped(t, whole)...), "something follows its end")
	try("a cut", "p.tar", whole[:700], "it is damaged or no tar")
	try("a cut", "p.tar.gz", gzipped(t, whole)[:80], "damaged")
	try("no tar at all", "p.tar", bytes.Repeat([]byte("x"), 2000), "it is damaged or no tar")
	try("no gzip at all", "p.tgz", []byte("x"), "it is no gzip")
	try("no zip at all", "p.zip", []byte("x"), "it is no zip, or it was cut off")
	try("nothing at all", "p.zip", nil, "it is no zip, or it was cut off")
}

// The forms of a zip that two readers would read differently.
func TestZipsThatContradictThemselves(t *testing.T) {
	t.Parallel()
	members := []member{{name: "manifest.yaml", content: manifest("p", "1.0.0", "x")}, {name: "plugin.py", content: "print()\n"}}
	good := zipped(t, members...)
	u32 := binary.LittleEndian
	central := func(z []byte, n int) int { // where the n-th record of the directory begins
		at := int(u32.Uint32(z[len(z)-6:]))
		for range n {
			at += 46 + int(u32.Uint16(z[at+28:])) + int(u32.Uint16(z[at+30:])) + int(u32.Uint16(z[at+32:]))
		}
		return at
	}
	for _, c := range []struct {
		name   string
		change func(z []byte) []byte
		want   string
	}{
		{"another name in front", func(z []byte) []byte { z[30] = 'M'; return z }, "what stands in front of it is not what its directory says"},
		{"another method in front", func(z []byte) []byte { z[8] = 0; return z }, "what stands in front of it is not what its directory says"},
		{"other flags in front", func(z []byte) []byte { z[6] ^= 8; return z }, "what stands in front of it is not what its directory says"},
		{"another length behind", func(z []byte) []byte {
			at := bytes.Index(z, []byte("PK\x07\x08"))
			z[at+8]++
			return z
		}, "what stands behind it is not what its directory says"},
		{"another content", func(z []byte) []byte { z[30+len("manifest.yaml")+3] ^= 0xff; return z }, ""},
		{"another checksum", func(z []byte) []byte {
			at := bytes.Index(z, []byte("PK\x07\x08"))
			z[at+4]++
			z[central(z, 0)+16]++
			return z
		}, "manifest.yaml is damaged: its content is not what its directory says"},
		{"two files in one place", func(z []byte) []byte { copy(z[central(z, 1)+42:], z[central(z, 0)+42:][:4]); return z }, "what stands behind it is not what its directory says"},
		{"a file in front", func(z []byte) []byte { return append([]byte("#!/bin/sh\n"), z...) }, "its directory does not end where the zip does"},
		{"something behind", func(z []byte) []byte { return append(z, 'x') }, "it is no zip, or it was cut off"},
		{"two ends", func(z []byte) []byte {
			end := bytes.Clone(z[len(z)-22:])
			z[len(z)-2] = 22 // a comment, which is the end once more
			return append(z, end...)
		}, "could be read in two ways"},
		{"fewer files than there are", func(z []byte) []byte { z[len(z)-14], z[len(z)-12] = 1, 1; return z }, ""},
		{"more files than there are", func(z []byte) []byte { z[len(z)-14], z[len(z)-12] = 9, 9; return z }, "its directory is damaged"},
		{"65,535 files", func(z []byte) []byte { copy(z[len(z)-14:], "\xff\xff\xff\xff"); return z }, "it is of the long form (zip64)"},
		{"several parts", func(z []byte) []byte { z[len(z)-18] = 1; return z }, "it is one of several parts"},
		{"encrypted", func(z []byte) []byte { z[6] |= 1; z[central(z, 0)+8] |= 1; return z }, "manifest.yaml is encrypted"},
		{"an unknown method", func(z []byte) []byte { z[8] = 12; z[central(z, 0)+10] = 12; return z }, "compressed in a way that is not read here (12)"},
		{"a length that lies", func(z []byte) []byte {
			at := bytes.Index(z, []byte("PK\x07\x08"))
			z[at+12]++
			z[central(z, 0)+24]++
			return z
		}, "manifest.yaml is damaged: its content is not what its directory says"},
		{"a huge length", func(z []byte) []byte { copy(z[central(z, 0)+24:], "\xfe\xff\xff\xff"); return z }, "becomes more than 200 times as large"},
		{"a directory of a file", func(z []byte) []byte { u32.PutUint32(z[central(z, 0)+38:], 0o040755<<16); return z }, "is a file by its name and a directory by its mode"},
		{"cut off", func(z []byte) []byte { return z[:len(z)/2] }, "it is no zip, or it was cut off"},
	} {
		b := open(t)
		report, _, err := b.sent("p.zip", c.change(bytes.Clone(good)), registry.RegisterOptions{})
		if plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %+v, %v, want %s", c.name, report, err, c.want)
		}
		if names := b.packages(); len(names) != 0 {
			t.Errorf("%s: left behind: %v", c.name, names)
		}
	}
	if _, _, err := open(t).sent("p.zip", good, registry.RegisterOptions{}); err != nil {
		t.Error(err)
	}
	extra := []byte{0x75, 0x70, 1, 0, 0}
	renamed := zipped(t, append(members, member{name: "a", content: "x", change: func(z *zip.FileHeader, _ *tar.Header) { z.Extra = extra }})...)
	if _, _, err := open(t).sent("p.zip", renamed, registry.RegisterOptions{}); err == nil || !strings.Contains(err.Error(), "a has a second name") {
		t.Errorf("a second name: %v", err)
	}
}

func TestAPackageFileIsNotLinked(t *testing.T) {
	t.Parallel()
	b := open(t)
	if _, _, err := b.sent("p.zip", nil, registry.RegisterOptions{Dev: true}); err == nil || !strings.Contains(err.Error(), "cannot be linked: unpack it") {
		t.Error(err)
	}
}

// A package of Shu is the one directory with a manifest in its package file, whatever
// stands beside that; of any other dialect nothing may.
func TestAShuPackageMayHaveFilesBesideItsDirectory(t *testing.T) {
	t.Parallel()
	one := func(dir string) []member {
		return []member{
			{name: dir + "/manifest.py", content: `PLUGIN_MANIFEST = {"name": "notes", "version": "1.0.0", "module": "plugins.notes.plugin:P", "chat_callable_ops": ["list"]}` + "\n"},
			{name: dir + "/plugin.py", content: "class P: ...\n"},
		}
	}
	readme, store, mac := member{name: "README.md", content: "read me"}, member{name: ".DS_Store", content: "x"}, member{name: "__MACOSX/._notes", content: "x"}
	native := []member{{name: "p/manifest.yaml", content: manifest("p", "1.0.0", "x")}, {name: "p/plugin.py", content: "print()\n"}}
	digests := map[string]bool{}
	for name, c := range map[string]struct {
		members []member
		refused string
	}{
		"alone":                        {one("notes"), ""},
		"beside files":                 {append(one("notes"), readme, store), ""},
		"after files":                  {append([]member{readme}, one("notes")...), ""},
		"beside a directory":           {append(one("notes"), mac, member{name: "docs/index.md", content: "x"}), ""},
		"another name":                 {append(one("Notes-1.0"), readme), ""},
		"two that have a manifest":     {append(append(one("notes"), one("other")...), readme), "put the manifest there, or everything into one directory"},
		"no manifest at all":           {[]member{{name: "notes/plugin.py", content: "class P: ...\n"}, readme}, "put the manifest there"},
		"another dialect":              {append(native, readme), "put the manifest there"},
		"a manifest deeper than there": {append(one("notes/inner"), readme), "put the manifest there"},
	} {
		for kind, data := range map[string][]byte{"zip": zipped(t, c.members...), "tar": tarred(t, c.members...)} {
			b := open(t)
			report, _, err := b.sent("notes."+kind, data, registry.RegisterOptions{})
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) || len(report.Registered) != 0 {
					t.Errorf("%s, %s: %+v, %v", name, kind, report, err)
				}
				continue
			}
			if err != nil || len(report.Registered) != 1 || report.Registered[0].Name != "notes" {
				t.Errorf("%s, %s: %+v, %v", name, kind, report, err)
				continue
			}
			for _, beside := range []string{"README.md", "__MACOSX", "docs"} {
				if _, err := os.Stat(filepath.Join(report.Registered[0].Path, beside)); err == nil {
					t.Errorf("%s, %s: %s is a part of the package", name, kind, beside)
				}
			}
			digests[report.Registered[0].Digest] = true
		}
	}
	if len(digests) != 1 {
		t.Errorf("the same package has the digests %v", digests)
	}
}

// A package file cannot make what stands beside it a part of a package: the tree
// of an investigation plugin ends at its own top.
func TestAPackageFileHasNoNeighbours(t *testing.T) {
	t.Parallel()
	b := open(t)
	tool := `{"tool_name":"t","version":"1.0.0","pillar":"package","display_name":"T","description_short":"t","entry_point":"tool.py","class_name":"T"}`
	report, _, err := b.sent("t.zip", zipped(t, member{name: "t/manifest.json", content: tool}, member{name: "t/tool.py", content: "class T: pass\n"}), registry.RegisterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	_ = filepath.WalkDir(report.Registered[0].Path, func(string, fs.DirEntry, error) error { count++; return nil })
	if count > 6 {
		t.Errorf("the package holds %d files", count)
	}
}

func FuzzZip(f *testing.F) {
	f.Add(zipped(f, member{name: "manifest.yaml", content: manifest("p", "1.0.0", "x")}, member{name: "plugin.py", content: "print()\n"}))
	f.Add(zipped(f, member{name: "a/"}, member{name: "a/b", content: "c"}))
	f.Add([]byte("PK\x05\x06"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := registry.Unpack(dir, data); err != nil && plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Fatalf("%v", err)
		}
		if left, _ := os.ReadDir(filepath.Join(dir, "packages")); len(left) != 0 {
			t.Fatalf("left behind: %v", left)
		}
	})
}
