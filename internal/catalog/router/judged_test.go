package router_test

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	_ "github.com/mortise-dev/mortise/internal/catalog/contract/all"
	"github.com/mortise-dev/mortise/internal/catalog/router"
)

// What the router reaches over the judged questions, less some room for a
// change of a manifest's words. It goes up with the router, and never down.
const (
	leastAtOne   = 0.88
	leastAtThree = 0.97
)

// A judged question is one with the tool that answers it.
type judged struct {
	tool, text string
	artifacts  []router.Artifact
}

// TestJudgedQuestions asks questions as analysts put them, over the tools that
// ship, and prints how often the right tool comes first, and how often among
// the first three.
func TestJudgedQuestions(t *testing.T) {
	t.Parallel()
	questions, tools := readJudged(t, "testdata/judged.txt"), shippedTools(t)
	if len(questions) < 150 || len(tools) != 12 {
		t.Fatalf("%d questions over %d tools", len(questions), len(tools))
	}
	one, three := places(t, questions, tools)
	t.Logf("%d questions: the right tool is first for %.3f of them, and among the first three for %.3f", len(questions), one, three)
	if one < leastAtOne || three < leastAtThree {
		t.Errorf("first %.3f, among three %.3f; it was at least %v and %v", one, three, leastAtOne, leastAtThree)
	}
	unseen := readJudged(t, "testdata/unseen.txt")
	one, three = places(t, unseen, tools)
	t.Logf("%d questions that nothing was changed for: first for %.3f, among the first three for %.3f", len(unseen), one, three)
}

// places returns for which share of the questions the right tool comes first,
// and for which it is among the first three. It names those where it is not first.
func places(t *testing.T, questions []judged, tools []router.Candidate) (atOne, atThree float64) {
	t.Helper()
	one, three := 0, 0
	asked, missed := map[string]int{}, map[string]int{}
	for _, q := range questions {
		answer := router.Route(router.Query{Text: q.text, Artifacts: q.artifacts}, tools)
		at := slices.IndexFunc(answer.Included, func(c router.Choice) bool { return strings.HasPrefix(c.Operation, q.tool+"/") })
		asked[q.tool]++
		if at == 0 {
			one++
		} else {
			missed[q.tool]++
			t.Logf("place %d of %s (pillar %s): %s", at+1, q.tool, answer.Pillar, q.text)
		}
		if at >= 0 && at < 3 {
			three++
		}
	}
	for tool := range asked {
		if missed[tool] > 0 {
			t.Logf("%s: %d of %d not first", tool, missed[tool], asked[tool])
		}
	}
	return float64(one) / float64(len(questions)), float64(three) / float64(len(questions))
}

// readJudged reads questions, one a line.
func readJudged(t *testing.T, name string) []judged {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var questions []judged
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(line, " | ", 3)
		if len(parts) != 3 {
			t.Fatalf("no question: %q", line)
		}
		q := judged{tool: parts[0], text: parts[2]}
		for kind := range strings.SplitSeq(parts[1], ",") {
			if kind != "-" {
				q.artifacts = append(q.artifacts, router.Artifact{Type: kind})
			}
		}
		questions = append(questions, q)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return questions
}

// shippedTools are the tools of investigations that the host carries.
func shippedTools(t *testing.T) []router.Candidate {
	t.Helper()
	dirs, err := filepath.Glob("../../../plugins/*/*/schemas")
	if err != nil {
		t.Fatal(err)
	}
	var tools []router.Candidate
	for _, dir := range dirs {
		m, err := contract.Read(filepath.Dir(dir))
		if err != nil {
			t.Fatal(err)
		}
		if m.Pillar == "" && m.Name != "pattern_extractor" {
			continue
		}
		for _, op := range m.Operations {
			tools = append(tools, router.Candidate{Manifest: m, Operation: op})
		}
	}
	return tools
}
