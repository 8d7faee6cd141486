package environment

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// made makes a wheel with files beside its metadata, and returns its name and bytes.
func made(t *testing.T, project, version, tag string, files map[string]string) (name string, data []byte) {
	t.Helper()
	stem := strings.ReplaceAll(project, "-", "_") + "-" + version
	all := map[string]string{
		stem + ".dist-info/METADATA": "Metadata-Version: 2.1\nName: " + project + "\nVersion: " + version + "\n\nA package.\n",
		stem + ".dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: " + tag + "\n",
	}
	maps.Copy(all, files)
	var record strings.Builder
	for _, file := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&record, "%s,,\n", file)
	}
	fmt.Fprintf(&record, "%s.dist-info/RECORD,,\n", stem)
	all[stem+".dist-info/RECORD"] = record.String()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		f, err := w.Create(file)
		if err == nil {
			_, err = f.Write([]byte(all[file]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return stem + "-" + tag + ".whl", out.Bytes()
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// A shelf is a directory of wheels.
type shelf struct {
	*testing.T
	dir    string
	hashes map[string]string // by file
}

func (s shelf) put(project, version, tag string, files map[string]string) string {
	s.Helper()
	name, data := made(s.T, project, version, tag, files)
	if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o600); err != nil {
		s.Fatal(err)
	}
	s.hashes[name] = hashOf(data)
	return "--hash=sha256:" + s.hashes[name]
}

func newShelf(t *testing.T) shelf { return shelf{t, t.TempDir(), map[string]string{}} }

func (s shelf) options() Options {
	return Options{Dir: s.dir, MaxBytes: 1 << 20, Timeout: time.Minute, Python: "3.11.7"}
}

// install builds an environment and returns what is in it.
func install(t *testing.T, o Options, requirements string) (*plugin.Environment, map[string]string, error) {
	t.Helper()
	dir := t.TempDir()
	env, err := Build(t.Context(), o, []byte(requirements), dir, t.TempDir())
	return env, filesIn(t, dir), err
}

func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestWheelsOfADirectoryAreInstalled(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	one := s.put("One.Thing", "1.0", "py3-none-any", map[string]string{"one/__init__.py": "X = 1\n", "shared/a.txt": "same"})
	two := s.put("two", "2.1.0", "cp311-cp311-manylinux_2_17_"+machine(t), map[string]string{"two.py": "Y = 2\n", "shared/a.txt": "same", "two-2.1.0.data/purelib/more.py": "Z = 3\n", "two-2.1.0.data/scripts/run": "#!python\n", "two.pth": "import os\n"})
	s.put("two", "2.1.0", "cp312-cp312-manylinux_2_17_"+machine(t), map[string]string{"two.py": "Y = 12\n"})
	env, files, err := install(t, s.options(), "# made by hand\n--require-hashes\none-thing == 1.0 \\\n    "+one+"  # the one\ntwo[fast]==2.1 "+two+"\n")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Join(slices.Sorted(maps.Keys(files)), " ")
	want := "One.Thing-1.0.dist-info/METADATA One.Thing-1.0.dist-info/RECORD One.Thing-1.0.dist-info/WHEEL more.py one/__init__.py shared/a.txt two-2.1.0.dist-info/METADATA two-2.1.0.dist-info/RECORD two-2.1.0.dist-info/WHEEL two.py"
	if names != want || files["two.py"] != "Y = 2\n" || files["more.py"] != "Z = 3\n" {
		t.Errorf("%s", names)
	}
	if env.Python != "3.11" || env.From != s.dir || len(env.Wheels) != 2 || env.Wheels[0].Name != "one-thing" || env.Wheels[0].SHA256 != s.hashes["One.Thing-1.0-py3-none-any.whl"] || env.Wheels[1].Version != "2.1" {
		t.Errorf("%+v", env)
	}
	again, _, err := install(t, s.options(), "two==2.1 "+two+"\none-thing==1.0 "+one+"\n")
	if err != nil || again.Digest != env.Digest || !strings.HasPrefix(env.Digest, "sha256:") {
		t.Errorf("in another order it has the digest %+v, %v", again, err)
	}
}

func machine(t *testing.T) string {
	t.Helper()
	fits, err := tagsOf("3.11.7")
	if err != nil {
		t.Fatal(err)
	}
	if fits.machine == "" || fits.musl {
		t.Skip("the wheels of this system are not manylinux: run it on Linux with glibc")
	}
	return fits.machine
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	one := s.put("one", "1.0", "py3-none-any", map[string]string{"one.py": "X = 1\n"})
	big := s.put("big", "1.0", "py3-none-any", map[string]string{"big.py": strings.Repeat("x = 1\n", 50_000)})
	other := s.put("other", "1.0", "py3-none-any", map[string]string{"one.py": "X = 2\n"})
	out := s.put("out", "1.0", "py3-none-any", map[string]string{"../out.py": "X = 2\n"})
	old := s.put("old", "1.0", "cp27-cp27m-manylinux1_x86_64", nil)
	name, data := made(t, "true", "1.0", "py3-none-any", nil)
	false1 := "--hash=sha256:" + hashOf(data)
	if err := os.WriteFile(filepath.Join(s.dir, strings.Replace(name, "true", "false", 1)), data, 0o600); err != nil {
		t.Fatal(err)
	}
	for requirements, want := range map[string]string{
		"one==1.0":                              "has no hash",
		"one>=1.0 " + one:                       "does not name one version",
		"one":                                   "does not name one version",
		"one==1.* " + one:                       "does not name one version",
		"one==1.0; python_version > '3' " + one: "holds for some machines only",
		"--index-url https://elsewhere.example/\none==1.0 " + one: "is an option",
		"-r other.txt": "is an option",
		"-e .":         "is an option",
		"one @ https://elsewhere.example/one.whl": "does not name one version",
		"./one.whl":                             "does not name one version",
		"one==1.0 --hash=md5:0123":              "no hash of the form",
		"one==1.0 " + one + "\nOne==1.0 " + one: "stands in line 1 already",
		"":                                      "asks for nothing",
		"one==1.0 --hash=sha256:" + strings.Repeat("0", 64): "is not what one was to have",
		"one==1.1 " + one:                           "no wheel of one 1.1",
		"missing==1.0 " + one:                       "there is no wheel of missing; source distributions",
		"old==1.0 " + old:                           "none of the 1 wheels of old 1.0 is for Python 3.11",
		"one==1.0 " + one + "\nother==1.0 " + other: "one.py is in one-1.0-py3-none-any.whl too",
		"out==1.0 " + out:                           "out-1.0-py3-none-any.whl",
		"false==1.0 " + false1:                      "METADATA is of another project",
		"big==1.0 " + big:                           "larger than plugins.environments.size",
	} {
		o := s.options()
		o.MaxBytes = 100_000
		_, _, err := install(t, o, requirements)
		if plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", requirements, err)
		}
	}
	o := s.options()
	o.Unhashed = true
	if _, files, err := install(t, o, "one==1.0"); err != nil || files["one.py"] == "" {
		t.Errorf("without a hash, where that is allowed: %v", err)
	}
	if _, _, err := install(t, o, "one"); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("without a version: %v", err)
	}
}

// serve answers as an index of the simple form does, with the files of a shelf at /files/.
func (s shelf) serve(form string, others map[string]http.HandlerFunc) *httptest.Server {
	mux := http.NewServeMux()
	mux.Handle("/files/", http.StripPrefix("/files/", http.FileServer(http.Dir(s.dir))))
	for path, do := range others {
		mux.HandleFunc(path, do)
	}
	mux.HandleFunc("/simple/{project}/", func(w http.ResponseWriter, r *http.Request) {
		type file struct {
			Filename string            `json:"filename"`
			URL      string            `json:"url"`
			Hashes   map[string]string `json:"hashes"`
		}
		var files []file
		for name, hash := range s.hashes {
			if strings.HasPrefix(strings.ToLower(name), r.PathValue("project")+"-") {
				files = append(files, file{name, "../../files/" + name, map[string]string{"sha256": hash}})
			}
		}
		if len(files) == 0 {
			http.NotFound(w, r)
			return
		}
		if form == simpleJSON {
			w.Header().Set("Content-Type", form)
			_ = json.NewEncoder(w).Encode(map[string]any{"meta": map[string]string{"api-version": "1.0"}, "name": r.PathValue("project"), "files": files})
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!DOCTYPE html><html><body>")
		for _, f := range files {
			fmt.Fprintf(w, "<a href=\"%s#sha256=%s\">%s</a><br/>\n", f.URL, f.Hashes["sha256"], f.Filename)
		}
	})
	server := httptest.NewServer(mux)
	s.Cleanup(server.Close)
	return server
}

func TestAnIndexInBothForms(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"text/html", simpleJSON} {
		s := newShelf(t)
		one := s.put("one", "1.0", "py3-none-any", map[string]string{"one.py": "X = 1\n"})
		s.put("one", "1.1", "py3-none-any", map[string]string{"one.py": "X = 11\n"})
		o := Options{Index: s.serve(form, nil).URL + "/simple", MaxBytes: 1 << 20, Timeout: time.Minute, Python: "3.11"}
		env, files, err := install(t, o, "one==1.0 "+one)
		if err != nil || files["one.py"] != "X = 1\n" || env.From != o.Index+"/" {
			t.Errorf("%s: %v, %+v, %v", form, files, env, err)
		}
		if _, _, err := install(t, o, "gone==1.0 "+one); plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), "has no /simple/gone/") {
			t.Errorf("%s: a project that is not there: %v", form, err)
		}
	}
}

// What an index names elsewhere is not fetched, and what answers too late or too much is not
// waited for.
func TestAnIndexLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(elsewhere.Close)
	s := newShelf(t)
	hash := strings.TrimPrefix(s.put("one", "1.0", "py3-none-any", nil), "--hash=sha256:")
	release := make(chan struct{})
	page := func(link string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, `<a href="%s#sha256=%s">x</a>`, link, hash)
		}
	}
	server := s.serve("", map[string]http.HandlerFunc{
		"/simple/away/":  page(elsewhere.URL + "/away-1.0-py3-none-any.whl"),
		"/simple/led/":   page("/led/led-1.0-py3-none-any.whl"),
		"/led/":          func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) },
		"/simple/round/": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/simple/round/", http.StatusFound) },
		"/simple/slow/":  func(w http.ResponseWriter, r *http.Request) { <-release },
		"/simple/ill/":   func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"/simple/large/": page("/large/large-1.0-py3-none-any.whl"),
		"/large/":        func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(make([]byte, 2<<20)) },
	})
	t.Cleanup(func() { close(release) })
	for project, want := range map[string]plugin.Code{
		"away": plugin.CodeInvalidInput, "led": plugin.CodeInvalidInput, "large": plugin.CodeInvalidInput,
		"round": plugin.CodeUnavailable, "ill": plugin.CodeUnavailable, "slow": plugin.CodeTimeout,
	} {
		o := Options{Index: server.URL + "/simple/", MaxBytes: 1 << 20, Timeout: time.Minute, Python: "3.11"}
		if project == "slow" {
			o.Timeout = 50 * time.Millisecond
		}
		if _, files, err := install(t, o, project+"==1.0 --hash=sha256:"+hash); plugin.CodeOf(err) != want || len(files) != 0 {
			t.Errorf("%s: %v, %v", project, err, files)
		}
	}
	if asked {
		t.Error("another host than the index was asked")
	}
	for _, index := range []string{"http://pypi.example/simple/", "ftp://127.0.0.1/", "https://a:b@pypi.example/"} {
		if _, _, err := install(t, Options{Index: index, Python: "3.11", MaxBytes: 1, Timeout: time.Minute}, "one==1.0 --hash=sha256:"+hash); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%s: %v", index, err)
		}
	}
}

// What pip makes of the same requirements, from the same index, is the second opinion.
func TestPipInstallsTheSame(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "python3", "-c", "import pip, sys; print('%d.%d' % sys.version_info[:2])").Output()
	if err != nil {
		t.Skip("python3 with pip is not installed, to compare with: apt-get install python3-pip")
	}
	s := newShelf(t)
	one := s.put("OneThing", "1.0", "py3-none-any", map[string]string{"one/__init__.py": "X = 1\n", "one/data/table.csv": "a,b\n"})
	two := s.put("two", "2.1.0", "py2.py3-none-any", map[string]string{"two.py": "Y = 2\n", "two-2.1.0.data/purelib/more.py": "Z = 3\n"})
	requirements := "OneThing==1.0 " + one + "\ntwo==2.1.0 " + two + "\n"
	file := filepath.Join(t.TempDir(), "requirements.txt")
	if err := os.WriteFile(file, []byte(requirements), 0o600); err != nil {
		t.Fatal(err)
	}
	server := s.serve("text/html", nil)
	version := strings.TrimSpace(string(out))
	_, ours, err := install(t, Options{Index: server.URL + "/simple/", MaxBytes: 1 << 20, Timeout: time.Minute, Python: version}, requirements)
	if err != nil {
		t.Fatal(err)
	}
	target := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "python3", "-m", "pip", "install", "--isolated", "--no-cache-dir", "--no-compile", "--disable-pip-version-check", "--require-hashes", "--no-deps",
		"--index-url", server.URL+"/simple/", "--target", target, "-r", file)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pip: %v\n%s", err, said)
	}
	theirs := filesIn(t, target)
	for _, of := range []map[string]string{ours, theirs} {
		maps.DeleteFunc(of, func(name, _ string) bool {
			return strings.Contains(name, ".dist-info/") && !strings.HasSuffix(name, "/METADATA")
		})
	}
	if !maps.Equal(ours, theirs) {
		t.Errorf("%v\npip: %v", slices.Sorted(maps.Keys(ours)), slices.Sorted(maps.Keys(theirs)))
	}
}

func FuzzRequirements(f *testing.F) {
	f.Add("one==1.0 --hash=sha256:"+strings.Repeat("a", 64), true)
	f.Add("one==1.0 \\\n", false)
	f.Fuzz(func(t *testing.T, text string, unhashed bool) {
		all, err := read([]byte(text), unhashed)
		for _, r := range all {
			if err != nil || r.name == "" || r.version == "" || r.name != normal(r.name) || !unhashed && len(r.hashes) == 0 {
				t.Errorf("%q: %+v, %v", text, r, err)
			}
		}
	})
}
