package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// tunnel connects to a host and carries bytes both ways, until both ends are done, nothing was
// carried for a while, one way has carried all that it may, or the proxy closes.
func (p *Proxy) tunnel(w http.ResponseWriter, u *url.URL, t *traffic) error {
	ctx, cancel := context.WithTimeout(p.life, p.opts.Connect)
	defer cancel()
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "443")
	}
	host, err := p.opts.Dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		err = unanswered(u, err)
		p.refuse(w, err)
		return err
	}
	defer host.Close()
	program, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer program.Close()
	_ = program.SetDeadline(time.Time{})
	end := sync.OnceFunc(func() { _, _ = host.Close(), program.Close() })
	stop := context.AfterFunc(p.life, end)
	defer stop()
	late := time.AfterFunc(p.opts.Idle, end)
	defer late.Stop()
	if _, err := io.WriteString(program, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return err
	}
	early, _ := buffered.Peek(buffered.Reader.Buffered()) // what came behind the request already

	var back error
	var both sync.WaitGroup
	both.Go(func() {
		back = carry(program, &metered{src: host, left: p.opts.Bytes, moved: func(n int) { t.in.Add(int64(n)); late.Reset(p.opts.Idle) }}, end)
	})
	_, err = host.Write(early)
	t.out.Add(int64(len(early)))
	if err == nil {
		err = carry(host, &metered{src: program, left: p.opts.Bytes - int64(len(early)), moved: func(n int) { t.out.Add(int64(n)); late.Reset(p.opts.Idle) }}, end)
	} else {
		end()
	}
	both.Wait()
	return errors.Join(err, back)
}

// carry copies one way to its end, which it passes on. An error ends the tunnel.
func carry(to net.Conn, from io.Reader, end func()) error {
	_, err := io.CopyBuffer(onlyWriter{to}, from, make([]byte, chunk))
	half, able := to.(interface{ CloseWrite() error })
	if err != nil || !able || half.CloseWrite() != nil {
		end()
	}
	return err
}

// An onlyWriter has no ReadFrom, so that the copy is metered.
type onlyWriter struct{ io.Writer }

// limit returns a listener that has so many connections at a time: others wait to be accepted.
func limit(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slot{conn.(*net.TCPConn), sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// A slot is a connection that makes way for another once it is closed.
type slot struct {
	*net.TCPConn
	release func()
}

func (s *slot) Close() error {
	defer s.release()
	return s.TCPConn.Close()
}
