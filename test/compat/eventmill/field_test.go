package eventmill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testinput"
)

// An inquiry is a session that is held twice: on the host, and in an interpreter
// that does what the compatibility facts say (reference.py). Whatever comes out
// must be the same.
type inquiry struct {
	evidence  []string
	reference map[string]string
	model     string // what a model answers; "" where there is none
	calls     []asked
}

// An asked is one call; "$0" in its payload is the id of the first artifact.
type asked struct {
	tool    string
	payload map[string]any
}

type m = map[string]any

// An answered is what came of a call, on either side.
type answered struct {
	OK        bool
	ErrorCode string
	Message   string
	Summary   string
	Result    any
	Details   any
	Outputs   any
	Artifacts []string // types
	raised    bool     // in the reference: the host may say more
}

func TestToolsOfTheFieldAnswerAsTheFactsSay(t *testing.T) {
	binary := testinput.Host(t)
	dir := t.TempDir()
	generate(t, dir)
	logs := []string{
		ofMachine(t, dir, "/var/log/dpkg.log", "dpkg.log", 4000), ofMachine(t, dir, "/var/log/alternatives.log", "alternatives.log.1", 2000),
	}
	made := func(names ...string) []string {
		for i := range names {
			names[i] = filepath.Join(dir, names[i])
		}
		return names
	}
	techniques, err := filepath.Abs("evidence/techniques.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]inquiry{
		"packages of this machine": {evidence: logs, calls: []asked{
			{"burst_detector", m{}}, // nothing in memory yet
			{"dpkg_timeline", m{}},
			{"dpkg_timeline", m{"artifact_id": "$0", "limit": "many"}},
			{"dpkg_timeline", m{"artifact_id": "$0"}},
			{"burst_detector", m{}},
			{"burst_detector", m{"sigma": "1.5", "window_minutes": "30"}},
			{"burst_detector", m{"sigma": "nan"}},
			{"dpkg_timeline", m{"artifact_id": "$0", "group_by": "package", "limit": 100}},
			{"dpkg_timeline", m{"file_path": "/evidence/of/mallory/dpkg.log", "group_by": "hour"}},
			{"dpkg_timeline", m{"file_path": "/evidence/of/mallory/kern.log"}},
			{"dpkg_timeline", m{"artifact_id": "$1"}},
			{"burst_detector", m{"artifact_id": "$1"}},
			{"burst_detector", m{"file_path": "nowhere.log"}},
			{"report_assembler", m{"title": "Changes"}},
		}},
		"network": {evidence: made("conn.tsv", "conn.log.2", "capture.pcap", "empty.log"), calls: []asked{
			{"conn_sweeper", m{}},
			{"conn_sweeper", m{"artifact_id": "$0"}},
			{"conn_sweeper", m{"artifact_id": "$0", "min_count": "3"}},
			{"conn_sweeper", m{"artifact_id": "$0", "min_count": "few"}},
			{"conn_sweeper", m{"artifact_id": "$1"}},
			{"conn_sweeper", m{"artifact_id": "$1", "strict": true}},
			{"conn_sweeper", m{"artifact_id": "$2"}},
			{"conn_sweeper", m{"artifact_id": "$3"}},
			{"conn_sweeper", m{"artifact_id": "art_ffffffff"}},
			{"report_assembler", m{"register": "no", "filler": true}},
		}},
		"trail": {evidence: made("trail.json", "trail.jsonl", "broken.json"), calls: []asked{
			{"report_assembler", m{"title": " "}},
			{"trail_pivot", m{"action": "users"}},
			{"trail_pivot", m{"action": "load"}},
			{"trail_pivot", m{"action": "load", "artifact_id": "$2"}},
			{"trail_pivot", m{"action": "load", "artifact_id": "$1"}},
			{"trail_pivot", m{"action": "load", "artifact_id": "$0"}},
			{"trail_pivot", m{"action": "users"}},
			{"trail_pivot", m{"action": "sensitive"}},
			{"trail_pivot", m{"action": "pivot"}},
			{"trail_pivot", m{"action": "pivot", "user": "mallory"}},
			{"trail_pivot", m{"action": "pivot", "ip": "203.0.113.5"}},
			{"trail_pivot", m{"action": "pivot", "user": "nemo"}},
			{"trail_pivot", m{"action": "dance", "user": "nemo"}},
			{"report_assembler", m{}},
		}},
		"indicators": {evidence: made("advisory.html", "notes.txt", "report.pdf", "wide.log"), calls: []asked{
			{"ioc_harvester", m{}},
			{"ioc_harvester", m{"artifact_id": "$0"}},
			{"ioc_harvester", m{"artifact_ids": []string{"$0", "$1", "$3"}}},
			{"ioc_harvester", m{"artifact_id": "$2"}},
			{"ioc_harvester", m{"file_path": "notes.txt"}},
			{"ioc_harvester", m{"file_path": "missing.txt"}},
			{"ioc_harvester", m{"all": true}},
		}},
		"risk": {reference: map[string]string{"mitre_techniques": techniques}, calls: []asked{
			{"control_scorer", m{}},
			{"control_scorer", m{"techniques": "X1"}},
			{"control_scorer", m{"techniques": "T1046, T1071"}},
			{"control_scorer", m{"techniques": []string{"T1486"}, "save": true}},
			{"control_scorer", m{"scorer": "simple", "present": "SI-4"}},
			{"control_scorer", m{"scorer": "dice"}},
			{"control_scorer", m{"fail_late": true, "save": true}},
			{"attack_tree_writer", m{"goal": "Ransomware on the file server", "techniques": "T1046,T9999"}},
			{"attack_tree_writer", m{"goal": "exfiltration", "depth": "2"}},
			{"attack_tree_writer", m{"action": "extend", "goal": "exfiltration"}},
			{"attack_tree_writer", m{"action": "extend", "goal": "none such"}},
			{"attack_tree_writer", m{"action": "list"}},
			{"report_assembler", m{"title": "Größe → naïve"}},
		}},
		"habits": {evidence: made("notes.txt"), calls: []asked{
			{"odd_habits", m{}},
			{"odd_habits", m{"refuse": "tuple"}},
			{"odd_habits", m{"act": "positional"}},
			{"odd_habits", m{"act": "rich"}},
			{"odd_habits", m{"act": "nothing"}},
			{"odd_habits", m{"act": "empty"}},
			{"odd_habits", m{"act": "fails_with_result"}},
			{"odd_habits", m{"act": "fails_bare"}},
			{"odd_habits", m{"act": "raises_own"}},
			{"odd_habits", m{"act": "raises_key"}},
			{"odd_habits", m{"act": "looks_at_context"}},
			{"odd_habits", m{"act": "temporary"}},
			{"odd_habits", m{"act": "archive"}},
			{"odd_habits", m{"act": "twice"}},
			{"odd_habits", m{"act": "database"}},
			{"odd_habits", m{"act": "children"}},
			{"odd_habits", m{"act": "pools"}},
			{"odd_habits", m{"act": "processes"}},
			{"odd_habits", m{"act": "alarm"}},
			{"odd_habits", m{"act": "asks_the_terminal"}},
			{"odd_habits", m{"act": "captures_output"}},
			{"odd_habits", m{"act": "home"}},
			{"odd_habits", m{"act": "leaves_the_directory"}},
			{"odd_habits", m{"act": "odd_values"}},
			{"odd_habits", m{"act": "outputs"}},
			{"odd_habits", m{"act": "fails_with_outputs"}},
			{"odd_habits", m{"act": "long_message"}},
			{"odd_habits", m{"act": "database"}},
		}},
		"nothing at all": {calls: []asked{
			{"report_assembler", m{}},
			{"burst_detector", m{"file_path": "x.log"}},
		}},
		"with a model": {reference: map[string]string{"mitre_techniques": techniques}, model: "Phishing > Macro > Encrypt shares\nExposed VPN > Encrypt shares\nno path here", calls: []asked{
			{"attack_tree_writer", m{"goal": "ransomware", "assets": "NAS", "techniques": []string{"T1486"}}},
			{"attack_tree_writer", m{"action": "extend", "goal": "ransomware", "depth": 2}},
			{"report_assembler", m{}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in.hold(t, newHost(t, binary))
		})
	}
}

// hold holds the session on both sides and compares.
func (in *inquiry) hold(t *testing.T, h *host) {
	if in.model != "" {
		h.models(t, "", in.model)
	}
	for key, file := range in.reference {
		h.must(t, nil, "reference", "add", key, file)
	}
	tree, err := filepath.Abs("field/plugins")
	if err != nil {
		t.Fatal(err)
	}
	h.must(t, nil, "plugins", "register", "--dev", tree)
	session := h.session(t)
	evidence := []m{}
	for _, file := range in.evidence {
		evidence = append(evidence, m{"path": file, "type": h.add(t, session, file).Type})
	}
	wants := in.refer(t, tree, evidence)
	for i, c := range in.calls {
		input, err := json.Marshal(c.payload)
		if err != nil {
			t.Fatal(err)
		}
		text := string(input)
		for n, a := range h.artifacts(t, session) {
			text = strings.ReplaceAll(text, fmt.Sprintf(`"$%d"`, n), `"`+a.ID+`"`)
		}
		printed := h.run(t, "run", c.tool, "--session", session, "--json", "--input", text)
		compare(t, fmt.Sprintf("call %d, %s %s", i+1, c.tool, input), readAnswer(t, h, session, printed), wants.Outcomes[i], printed)
	}
	var got []string
	for _, a := range h.artifacts(t, session) {
		got = append(got, fmt.Sprintf("%s %s %s", a.Type, serial.ReplaceAllString(a.Name, "_*."), a.SourceTool))
	}
	if !slices.Equal(got, wants.Artifacts) {
		t.Errorf("artifacts are\n%s\nand should be\n%s", strings.Join(got, "\n"), strings.Join(wants.Artifacts, "\n"))
	}
}

// serial is what tells the saved result of one call from that of another.
var serial = regexp.MustCompile(`_[0-9]{8}_[0-9]{6}\.`)

func compare(t *testing.T, call string, got, want answered, printed []byte) {
	t.Helper()
	wrong := func(what string, got, want any) {
		t.Errorf("%s: %s is\n%v\nand should be\n%v\n%.2000s", call, what, got, want, printed)
	}
	switch {
	case want.raised && !strings.Contains(got.Message, want.Message), want.OK && got.Message != want.Message:
		wrong("message", got.Message, want.Message)
	case !want.OK && want.Message != "" && !strings.Contains(got.Message, want.Message):
		wrong("message", got.Message, want.Message)
	}
	if want.raised {
		got.Details, want.Details = nil, nil
	}
	got.Message, want.Message, want.raised = "", "", false
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() - 1 {
		if one, other := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(one, other) {
			wrong(g.Type().Field(i).Name, one, other)
		}
	}
}

// readAnswer reads what the host printed, with its own names for artifacts and
// directories taken out.
func readAnswer(t *testing.T, h *host, session string, printed []byte) answered {
	t.Helper()
	var ids []string
	for _, a := range h.artifacts(t, session) {
		ids = append(ids, a.ID)
	}
	text := scratch.ReplaceAllStringFunc(string(printed), func(path string) string {
		if strings.HasSuffix(path, "/workspace") {
			return "WORKSPACE"
		}
		return "/tmp/"
	})
	return outcomeOf(t, []byte(text), ids)
}

// scratch is the directory of a process: TMPDIR, and in it the working directory of its tools.
var scratch = regexp.MustCompile(`/[^" ]*/scratch/h-[^/" ]+/p-[0-9]+/(workspace)?`)

// outcomeOf reads an outcome. Empty details are as good as none.
func outcomeOf(t *testing.T, raw []byte, ids []string) answered {
	t.Helper()
	text := string(raw)
	for n, id := range ids {
		text = strings.ReplaceAll(text, id, fmt.Sprintf("artifact %d", n))
	}
	var o struct {
		OK        bool    `json:"ok"`
		ErrorCode *string `json:"error_code"`
		Message   *string `json:"message"`
		Summary   string  `json:"summary"`
		Result    any     `json:"result"`
		Details   any     `json:"details"`
		Outputs   any     `json:"output_artifacts"`
		Raised    bool    `json:"raised"`
		Artifacts []any   `json:"artifacts"`
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	a := answered{OK: o.OK, Summary: strings.TrimSpace(o.Summary), Result: o.Result, Details: o.Details, Outputs: o.Outputs, raised: o.Raised}
	if o.ErrorCode != nil {
		a.ErrorCode = *o.ErrorCode
	}
	if o.Message != nil {
		a.Message = *o.Message
	}
	if empty, ok := o.Details.(m); ok && len(empty) == 0 {
		a.Details = nil
	}
	for _, one := range o.Artifacts {
		if made, ok := one.(m); ok {
			one = made["type"]
		}
		a.Artifacts = append(a.Artifacts, fmt.Sprint(one))
	}
	return a
}

// A referred is what the reference says of a session.
type referred struct {
	Outcomes  []answered
	Artifacts []string // type, name, source
}

// refer holds the session in the reference.
func (in *inquiry) refer(t *testing.T, tree string, evidence []m) referred {
	t.Helper()
	calls := make([]m, len(in.calls))
	for i, c := range in.calls {
		calls[i] = m{"tool": c.tool, "payload": c.payload}
	}
	said := m{"tree": tree, "work": t.TempDir(), "evidence": evidence, "reference": in.reference, "model": nil, "calls": calls}
	if in.reference == nil {
		said["reference"] = m{}
	}
	if in.model != "" {
		said["model"] = in.model
	}
	stdin, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("reference.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "python3", "-B", script)
	cmd.Env = append(os.Environ(), "TMPDIR=") // as a plugin has it
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), &stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("the reference: %v\n%s", err, stderr.Bytes())
	}
	var out struct {
		Outcomes  []json.RawMessage `json:"outcomes"`
		Artifacts []made            `json:"artifacts"`
		Workspace string            `json:"workspace"`
	}
	if err := json.Unmarshal(raw, &out); err != nil || len(out.Outcomes) != len(in.calls) {
		t.Fatalf("the reference: %v: %s", err, raw)
	}
	var r referred
	var ids []string
	for _, a := range out.Artifacts {
		ids = append(ids, a.ID)
		r.Artifacts = append(r.Artifacts, fmt.Sprintf("%s %s %s", a.Type, serial.ReplaceAllString(a.Name, "_*."), a.SourceTool))
	}
	for _, one := range out.Outcomes {
		one = bytes.ReplaceAll(one, []byte(out.Workspace), []byte("WORKSPACE"))
		r.Outcomes = append(r.Outcomes, outcomeOf(t, one, ids))
	}
	return r
}

// A made is an artifact as both sides list it.
type made struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Name       string `json:"name"`
	SourceTool string `json:"source_tool"`
	Size       int64  `json:"size"`
}

// session creates a session, which is closed at the end.
func (h *host) session(t *testing.T) string {
	t.Helper()
	var s struct {
		ID string `json:"id"`
	}
	h.must(t, &s, "sessions", "create", "--json")
	t.Cleanup(func() { _ = exec.Command(h.binary, "--home", h.home, "sessions", "close", s.ID).Run() })
	return s.ID
}

func (h *host) add(t *testing.T, session, file string) made {
	t.Helper()
	var added struct {
		Artifacts []made `json:"artifacts"`
	}
	h.must(t, &added, "artifacts", "add", file, "--session", session, "--json")
	return added.Artifacts[0]
}

func (h *host) artifacts(t *testing.T, session string) []made {
	t.Helper()
	var list struct {
		Artifacts []made `json:"artifacts"`
	}
	h.must(t, &list, "artifacts", "list", "--session", session, "--json")
	return list.Artifacts
}

// ofMachine copies the first lines of a log of this machine, or, where it has none,
// of the generated one.
func ofMachine(t *testing.T, dir, from, to string, lines int) string {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil || len(data) == 0 {
		if data, err = os.ReadFile(filepath.Join(dir, filepath.Base(from)+".generated")); err != nil {
			t.Fatal(err)
		}
	}
	all := bytes.SplitAfter(data, []byte("\n"))
	path := filepath.Join(dir, to)
	if err := os.WriteFile(path, bytes.Join(all[:min(lines, len(all))], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// generate writes evidence that is the same at every run.
func generate(t *testing.T, dir string) {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 11))
	files := map[string]*strings.Builder{}
	write := func(name, format string, args ...any) {
		if files[name] == nil {
			files[name] = &strings.Builder{}
		}
		fmt.Fprintf(files[name], format, args...)
	}
	write("empty.log", "")
	for i := range 600 {
		write("dpkg.log.generated", "2026-0%d-%02d %02d:%02d:%02d install tool-%d:amd64 <none> 1.%d\n", 1+i/100, 1+i%28, i%24, i%60, i%60, i%90, i)
		write("alternatives.log.generated", "update-alternatives 2026-01-%02d %02d:00:00: run with --quiet\n", 1+i%28, i%24)
	}
	write("conn.tsv", "ts\tsrc\tsport\tdst\tdport\tproto\tbytes\n")
	for i := range 400 {
		write("conn.tsv", "%d.5\t10.0.0.%d\t%d\t198.51.100.%d\t%d\ttcp\t%d\n", 1700000000+random.IntN(9000), 1+random.IntN(9), 1024+i, random.IntN(40), 1+random.IntN(60), random.IntN(1<<20))
		if i < 40 {
			write("conn.tsv", "%d.0\t10.0.0.66\t40000\t203.0.113.9\t443\ttcp\t-\n", 1700000000+60*i)
		}
	}
	write("conn.log.2", "1.0\t10.0.0.1\t1\t10.0.0.2\t2\ttcp\t3\nnot a connection\n2.0\t10.0.0.1\t1\tfe80::1\t2\ttcp\t-\r\n\xff\xfe\t\x00\n")
	write("capture.pcap", "\xd4\xc3\xb2\xa1\x02\x00\x04\x00")
	write("broken.json", `{"Records": [{"eventTime": "2026-01-01T00:00:00Z",`)
	var records []string
	for i := range 120 {
		user, address := []string{"alice", "bob", "mallory"}[random.IntN(3)], fmt.Sprintf("203.0.113.%d", random.IntN(8))
		name := []string{"ListBuckets", "GetObject", "CreateAccessKey", "DeleteTrail", "CreateSnapshot"}[random.IntN(5)]
		records = append(records, fmt.Sprintf(`{"eventTime":"2026-01-%02dT%02d:%02d:00Z","eventSource":"s3.amazonaws.com","eventName":%q,"awsRegion":"eu-central-1","sourceIPAddress":%q,"userIdentity":{"type":"IAMUser","userName":%q}}`,
			1+random.IntN(28), random.IntN(24), i%60, name, address, user))
	}
	write("trail.json", `{"Records":[%s]}`, strings.Join(records, ",\n"))
	write("trail.jsonl", "%s\n\n", strings.Join(records[:40], "\n"))
	write("advisory.html", "<html><head><style>b{color:red}</style><script>var x='10.9.9.9'</script></head><body><p>Beacons to hxxps://evil[.]example and 203[.]0.113.9</p><p>T1071.001 &amp; T1486</p><b>%s</b></body></html>", strings.Repeat("ab", 32))
	write("notes.txt", "seen: 203.0.113.9, 999.1.1.1, EVIL.example, d41d8cd98f00b204e9800998ecf8427e\nT1046\n")
	write("report.pdf", "%%PDF-1.4\n%%nothing in it\n")
	for i := range 3000 {
		write("wide.log", "line %d from 192.0.2.%d to host%d.example.org \x00\xfe\n", i, i%256, i%50)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
