package agent

import "context"

// A Scene is where an event takes place, for the plugins that hear of it.
type Scene struct {
	Session string
	Type    string // direct, scheduled
	Channel string
	Turn    int64
}

type sceneKey struct{}

// SceneOf returns where what ctx is about takes place; the zero value outside any
// conversation.
func SceneOf(ctx context.Context) Scene {
	s, _ := ctx.Value(sceneKey{}).(Scene)
	return s
}

type holderKey struct{}

// holder returns the instance that ctx is a turn of; nil outside any.
func holder(ctx context.Context) *Instance {
	i, _ := ctx.Value(holderKey{}).(*Instance)
	return i
}

func within(ctx context.Context, s Scene) context.Context {
	return context.WithValue(ctx, sceneKey{}, s)
}
