package sandbox

import (
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

func TestLevelsComeFromTheLayersThatStand(t *testing.T) {
	t.Parallel()
	all := func(but ...string) []Layer {
		var layers []Layer
		for _, name := range All {
			layers = append(layers, Layer{Name: name, On: !strings.Contains(strings.Join(but, ","), name)})
		}
		return layers
	}
	for _, c := range []struct {
		layers []Layer
		want   Level
	}{
		{all(), Full},
		{all(LayerNet), Partial},
		{all(LayerUser, LayerMount, LayerPID, LayerNet, LayerIPC, LayerUTS), Partial},
		{all(LayerMemory), Partial},
		{all(LayerSeccomp), None},
		{all(LayerLandlock), None},
		{all(LayerNet, LayerLimits), None},
		{nil, None},
		{all()[1:], Partial}, // of which nothing was heard
	} {
		if got := reportOf(c.layers); got.Level != c.want || len(got.Layers) != len(All) {
			t.Errorf("%+v: %s, want %s", c.layers, got.Level, c.want)
		}
	}
}

func TestWhatIsRequiredIsNotStartedWithLess(t *testing.T) {
	t.Parallel()
	for _, level := range []Level{None, Partial} {
		r := noReport("the kernel was built without it")
		r.Level = level
		_, err := startWith(t, Required, r, nil)
		if plugin.CodeOf(err) != plugin.CodeIsolationUnavailable || !strings.Contains(err.Error(), "all of it (the kernel was built without it)") {
			t.Errorf("%s: %v", level, err)
		}
	}
}

// startWith starts a program where this is known of the machine.
func startWith(t *testing.T, mode Mode, r Report, told func(string)) (Report, error) {
	t.Helper()
	s, err := New(Options{Mode: mode, Dir: t.TempDir(), StartLimit: time.Minute, Notice: told})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	s.report, s.tried = &r, time.Now().Add(time.Hour) // it is not found out again
	p, err := s.Start(t.Context(), Spec{Argv: []string{"/bin/true"}, Scratch: t.TempDir()}, Files{})
	if err != nil {
		return Report{}, err
	}
	p.Wait()
	p.Release()
	return p.Report(), nil
}

// Whatever is missing, nothing starts unless the configuration says that it may,
// and then that is said once.
func TestWithAWallMissingNothingStartsUnlessTheConfigurationSaysSo(t *testing.T) {
	t.Parallel()
	for _, name := range All {
		var layers []Layer
		for _, each := range All {
			layers = append(layers, Layer{Name: each, On: each != name, Why: map[bool]string{true: "CONFIG_WALL is not set"}[each == name]})
		}
		r := reportOf(layers)
		var said []string
		tell := func(text string) { said = append(said, text) }
		for _, mode := range []Mode{"", Required} {
			_, err := startWith(t, mode, r, tell)
			if plugin.CodeOf(err) != plugin.CodeIsolationUnavailable || !strings.Contains(err.Error(), "lacks "+name+" (CONFIG_WALL is not set)") ||
				!strings.Contains(err.Error(), "mortise doctor") || !strings.Contains(err.Error(), "sandbox: best-effort") || len(said) != 0 {
				t.Errorf("%s, mode %q: %v %q", name, mode, err, said)
			}
		}
		// At level partial a cage is built here that has more walls than were said to be possible, and is refused.
		if got, err := startWith(t, BestEffort, r, tell); r.Level == None && (err != nil || got.Level != None) {
			t.Errorf("%s, best effort: %+v %v", name, got.Level, err)
		}
		if len(said) != 1 || !strings.Contains(said[0], "level "+string(r.Level)) || !strings.Contains(said[0], name+" (CONFIG_WALL is not set)") {
			t.Errorf("%s, best effort says %q", name, said)
		}
	}
	var said []string
	got, err := startWith(t, Off, noReport("sandbox is off in mortise.yaml"), func(text string) { said = append(said, text) })
	if err != nil || got.Level != None || len(said) != 1 || !strings.Contains(said[0], "off") {
		t.Errorf("off: %+v %v %q", got.Level, err, said)
	}
}
