package reference

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// TestTechniquesAreThereBeforeABundleWasRead: those of the matrices enterprise
// and ics, in the form that tools rely on.
func TestTechniquesAreThereBeforeABundleWasRead(t *testing.T) {
	t.Parallel()
	d := Open(t.TempDir())
	value, found, err := d.Get(t.Context(), "mitre_techniques", 4<<20)
	if err != nil || !found {
		t.Fatalf("found %v, %v", found, err)
	}
	var table map[string]Technique
	if err := json.Unmarshal(value, &table); err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{
		"enterprise": {"Reconnaissance", "Resource Development", "Initial Access", "Execution", "Persistence", "Privilege Escalation", "Defense Evasion",
			"Credential Access", "Discovery", "Lateral Movement", "Collection", "Command And Control", "Exfiltration", "Impact"},
		"ics": {"Initial Access", "Execution", "Persistence", "Privilege Escalation", "Evasion", "Discovery", "Lateral Movement", "Collection",
			"Command And Control", "Inhibit Response Function", "Impair Process Control", "Impact"},
	}
	form := map[string]*regexp.Regexp{"enterprise": regexp.MustCompile(`^T1[0-9]{3}(\.[0-9]{3})?$`), "ics": regexp.MustCompile(`^T08[0-9]{2}$`)}
	counts, subs := map[string]int{}, 0
	for id, one := range table {
		counts[one.Matrix]++
		parent, number, isSub := strings.Cut(id, ".")
		if isSub {
			subs++
		}
		if form[one.Matrix] == nil || !form[one.Matrix].MatchString(id) || one.Name == "" || len(one.Tactics) < 1 || len(one.Tactics) > 4 {
			t.Errorf("%s: %+v", id, one)
		}
		if end := parent + map[bool]string{true: "/" + number}[isSub]; !strings.HasSuffix(one.URL, end) {
			t.Errorf("%s is at %s", id, one.URL)
		}
		for _, tactic := range one.Tactics {
			if !strings.Contains("|"+strings.Join(known[one.Matrix], "|")+"|", "|"+tactic+"|") {
				t.Errorf("%s: %s is no tactic of %s", id, tactic, one.Matrix)
			}
		}
	}
	if counts["ics"] != 83 || counts["enterprise"] != 691 || subs != 475 || len(counts) != 2 {
		t.Errorf("%v, %d of them are sub-techniques", counts, subs)
	}
	if one := table["T1059.001"]; one.Name != "PowerShell" || one.Tactics[0] != "Execution" {
		t.Errorf("T1059.001 is %+v", one)
	}
	// The newest are there too, each with the tactics of its parent.
	for id, want := range map[string]string{
		"T1677": "Poisoned Pipeline Execution: Execution", "T1681": "Search Threat Vendor Data: Reconnaissance",
		"T1546.018": "Python Startup Hooks: Privilege Escalation Persistence", "T1562.013": "Disable or Modify Network Device Firewall: Defense Evasion",
	} {
		if got := table[id].Name + ": " + strings.Join(table[id].Tactics, " "); got != want {
			t.Errorf("%s is %s", id, got)
		}
	}
	if one := table["T0855"]; one.Name != "Unauthorized Command Message" || one.Tactics[0] != "Impair Process Control" {
		t.Errorf("T0855 is %+v", one)
	}
	// What the owner of the host adds is in its place; a file that cannot be used is no excerpt.
	if _, err := d.Add("mitre_techniques", file(t, "own.json", `{"T1": {}}`)); err != nil {
		t.Fatal(err)
	}
	if value := get(t, d, "mitre_techniques"); value != `{"T1":{}}` {
		t.Errorf("after it was added it is %.80s", value)
	}
}

// TestTablesSayTheirVersionAndComeBack: each matrix is of the version that its bundle
// says, whatever the order of its objects, and the table before can be had again.
func TestTablesSayTheirVersionAndComeBack(t *testing.T) {
	t.Parallel()
	d := Open(t.TempDir())
	version := func(k Key, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		list, err := d.List()
		if err != nil || len(list) != 1 || list[0] != k {
			t.Fatalf("listed %+v, %v; it was %+v", list, err, k)
		}
		return k.Version
	}
	if list, err := d.List(); err != nil || len(list) != 1 || list[0].Form != Bundled || list[0].Version != "enterprise 18, ics 18" || list[0].Size == 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	bundle := func(name, matrix, id, version string) string {
		return file(t, name, `{"type":"bundle","objects":[
			{"type":"attack-pattern","name":"One","x_mitre_version":"1.3","external_references":[{"source_name":"mitre-attack","external_id":"`+id+`"}],"x_mitre_domains":["`+strings.ToLower(matrix)+`-attack"]},
			{"type":"x-mitre-collection","name":"`+matrix+` ATT&CK","x_mitre_version":"`+version+`"}]}`)
	}
	enterprise, ics, mobile := bundle("e.json", "Enterprise", "T1001", "19.0"), bundle("i.json", "ICS", "T0800", "19.0"), bundle("m.json", "Mobile", "T1400", "18.1")
	key, counts, err := d.AddMitre(enterprise, ics, mobile)
	if got := version(key, err); got != "enterprise 19.0, ics 19.0, mobile 18.1" || len(counts) != 3 {
		t.Errorf("%q, %v", got, counts)
	}
	if _, err := d.Restore(MitreTechniques); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("nothing was there before, and %v", err)
	}
	key, _, err = d.AddMitre(bundle("n.json", "Enterprise", "T1001", "20"))
	if got := version(key, err); got != "enterprise 20" {
		t.Error(got)
	}
	for _, want := range []string{"enterprise 19.0, ics 19.0, mobile 18.1", "enterprise 20"} {
		if got := version(d.Put(MitreTechniques, Previous, nil)); got != want {
			t.Errorf("%q came back in the place of %q", got, want)
		}
	}
	key, _, err = d.AddMitre(bundle("o.json", "Enterprise", "T1001", "</script>"))
	if got := version(key, err); got != "" {
		t.Errorf("%q is no version", got)
	}
	if _, err := d.Restore("../x"); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Error(err)
	}
}
