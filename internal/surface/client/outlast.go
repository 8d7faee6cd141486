package client

import (
	"context"
	"net"
	"net/http/httptrace"
	"time"
)

// An outlasting is a request for a call that the end of its caller does not cut off. The host
// is told that no more comes from this side, by which it knows that the caller is gone, and
// still says how the call ended, for as long as [endings].
type outlasting struct {
	context.Context // of the request
	conn            chan *net.Conn
	over, watched   chan struct{}
}

// outlast begins one. over must be called.
func outlast(ctx context.Context) (o *outlasting, over func()) {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	o = &outlasting{conn: make(chan *net.Conn, 1), over: make(chan struct{}), watched: make(chan struct{})}
	o.Context = httptrace.WithClientTrace(life, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		select {
		case o.conn <- &got.Conn:
		default:
		}
	}})
	go func() {
		defer close(o.watched)
		select {
		case <-o.over:
			return
		case <-ctx.Done():
		}
		if o.leave() {
			late := time.NewTimer(endings)
			defer late.Stop()
			select {
			case <-o.over:
			case <-late.C:
			}
		}
		end(context.Cause(ctx))
	}()
	return o, func() { close(o.over); <-o.watched; end(nil) }
}

// leave says that no more comes, and reports whether that can be said: a connection that is
// encrypted, or of which there is none yet, is cut.
func (o *outlasting) leave() bool {
	select {
	case conn := <-o.conn:
		switch c := (*conn).(type) {
		case *net.UnixConn:
			return c.CloseWrite() == nil
		case *net.TCPConn:
			return c.CloseWrite() == nil
		}
	default:
	}
	return false
}
