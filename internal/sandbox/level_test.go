package sandbox

import (
	"strings"
	"testing"

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
		s, err := New(Options{Mode: Required, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		r := noReport("the kernel was built without it")
		r.Level = level
		s.report = &r
		_, err = s.Start(t.Context(), Spec{Argv: []string{"/bin/true"}, Scratch: t.TempDir()}, Files{})
		if plugin.CodeOf(err) != plugin.CodeIsolationUnavailable || !strings.Contains(err.Error(), "seccomp (the kernel was built without it)") {
			t.Errorf("%s: %v", level, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
