package mount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/internal/service/egress/proxy"
	"github.com/mortise-dev/mortise/plugin"
)

// A server is the connection to one mounted server, and what is known of its tools.
type server struct {
	runner   *Runner
	tenant   string
	manifest *plugin.Manifest
	pkg      plugin.Package

	busy int       // calls at work; guarded by Runner.mu
	used time.Time // likewise

	turn    chan struct{} // holds one token while the server is connected to or listed; guards the rest
	session *sdk.ClientSession
	program *process.Program  // that was started for it; nil for a server at a URL
	proxy   *proxy.Proxy      // of that program; nil for one without network
	secrets []string          // values that the program has in its environment
	stop    func()            // ends what the connection was made of
	gone    chan struct{}     // closed once the session has ended
	pinned  map[string]string // hash of each approved tool
	whole   string            // hash of the approved definition
	server  string            // how the approved server calls itself
	listed  time.Time         // when the tools were listed; zero for a list that counts no more
	changed map[string]string // why a tool is not called, by name
	all     string            // why none is
	told    string            // hash of the definition that Drifted was told of
	toldAt  time.Time

	unsigned  atomic.Pointer[plugin.Error] // someone has to sign in, as it turned out since the connection began
	stale     atomic.Bool                  // the server said that its tools changed
	closed    sync.Once
	ended     atomic.Bool
	work      sync.Mutex // guards the one below
	running   map[*running]bool
	observers sync.Map // progress tokens, each with the observer of its call
}

// ready returns the connection, once its tools were listed lately and the tool is the one that
// was approved. lost is one whose session the server has ended, which is not used any more.
func (s *server) ready(ctx context.Context, tool string, lost *sdk.ClientSession) (*sdk.ClientSession, error) {
	ctx, cancel := s.runner.within(ctx)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.ended.Load() {
		return nil, errClosing
	}
	if s.session != nil {
		select {
		case <-s.gone:
			s.hangUp()
		default:
		}
	}
	if s.session == lost {
		s.drop()
	}
	err := s.listedLately(ctx)
	if errors.Is(err, errSessionLost) {
		s.drop()
		err = s.listedLately(ctx)
	}
	if err != nil {
		return nil, err
	}
	why := s.all
	if why == "" {
		why = s.changed[tool]
	}
	if why != "" {
		return nil, plugin.Errorf(plugin.CodeQuarantined, "%s since it was approved, so it is not called; 'mortise plugins diff %s' shows the difference, 'mortise plugins approve %s' accepts it", why, s.manifest.Name, s.manifest.Name)
	}
	return s.session, nil
}

// listedLately connects, unless there is a connection, and lists the tools, unless they were
// listed lately. The caller has the turn.
func (s *server) listedLately(ctx context.Context) error {
	if s.session == nil {
		if err := s.runner.opts.Check(ctx, s.pkg); err != nil {
			return err
		}
		if err := s.connect(ctx); err != nil {
			return err
		}
	}
	if !s.stale.Swap(false) && time.Since(s.listed) <= s.runner.opts.Recheck {
		return nil
	}
	err := s.check(ctx)
	if err != nil {
		s.listed = time.Time{}
	}
	return err
}

// connect starts the server, or connects to it. The caller has the turn.
func (s *server) connect(ctx context.Context) error {
	within := s.runner.opts.Connect
	late := plugin.Errorf(plugin.CodeTimeout, "its server did not answer within %s", within)
	ctx, cancel := context.WithTimeoutCause(ctx, within, late)
	defer cancel()
	transport, stop, err := s.transport(ctx)
	if err != nil {
		return err
	}
	s.unsigned.Store(nil)
	client := sdk.NewClient(&sdk.Implementation{Name: "mortise", Version: version.Host}, &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{}, // no sampling, no elicitation, no roots
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { s.stale.Store(true) },
		ProgressNotificationHandler: s.progress,
	})
	client.AddSendingMiddleware(uncached)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		err = s.unreachable(ctx, err)
		if s.program != nil && errors.Is(err, late) {
			err = plugin.Errorf(plugin.CodeTimeout, "%s; %s", late.Message, s.reach())
		}
		if unsigned := s.unsigned.Load(); unsigned != nil { // after which an older revision was tried
			err = unsigned
		}
		if s.program != nil && ctx.Err() == nil {
			if crashed := s.program.Crashed("its server ended before it answered"); crashed != nil {
				crashed.Message = s.without(crashed.Message)
				if s.proxy != nil && len(s.proxy.Refusals()) > 0 {
					crashed.Message += "; " + s.reach()
				}
				err = crashed
			}
		}
		stop()
		return err
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = session.Wait()
	}()
	s.session, s.gone, s.listed = session, gone, time.Time{}
	s.stop = func() {
		_ = session.Close()
		stop()
		<-gone
	}
	return nil
}

// uncached keeps the client from answering from its own memory, whatever the server says of
// how long its list holds.
func uncached(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		res, err := next(ctx, method, req)
		if list, is := res.(*sdk.ListToolsResult); is && list != nil {
			list.TTLMs = 0
		}
		return res, err
	}
}

// without returns a text without the secrets that the server's program has.
func (s *server) without(text string) string {
	for _, value := range s.secrets {
		text = strings.ReplaceAll(text, value, "[secret]")
	}
	return text
}

// hangUp ends the connection. The caller has the turn.
func (s *server) hangUp() {
	if s.session != nil {
		s.stop()
		s.session = nil
	}
}

// drop ends the connection once the calls that it has are over, and does not wait for them. The
// caller has the turn.
func (s *server) drop() {
	if s.session != nil {
		s.session = nil
		s.runner.finish(s.stop)
	}
}

// close ends the connection for good.
func (s *server) close() {
	s.closed.Do(func() {
		s.ended.Store(true)
		s.turn <- struct{}{}
		s.hangUp()
		<-s.turn
	})
}

// list asks the server for all its tools. The caller has the turn.
func (s *server) list(ctx context.Context) (*Definition, error) {
	within := s.runner.opts.Connect
	ctx, cancel := context.WithTimeoutCause(ctx, within, plugin.Errorf(plugin.CodeTimeout, "its server did not list its tools within %s", within))
	defer cancel()
	var g gathering
	cursor := ""
	for range maxPages {
		page, err := s.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, s.unreachable(ctx, err)
		}
		if err := g.add(page.Tools); err != nil {
			return nil, err
		}
		if cursor = page.NextCursor; cursor == "" {
			return g.definition(s.itself()), nil
		}
	}
	return nil, plugin.Errorf(plugin.CodeLimitExceeded, "its server lists its tools on more than %d pages", maxPages)
}

// itself returns how the server calls itself.
func (s *server) itself() Server {
	if init := s.session.InitializeResult(); init != nil && init.ServerInfo != nil {
		return Server{Name: clip(init.ServerInfo.Name, maxName), Version: clip(init.ServerInfo.Version, maxName)}
	}
	return Server{}
}

// check lists the tools and compares them with those that were approved. The caller has the turn.
func (s *server) check(ctx context.Context) error {
	if s.pinned == nil {
		if err := s.pins(); err != nil {
			return err
		}
	}
	d, err := s.list(ctx)
	if err != nil {
		return err
	}
	raw, err := d.Bytes()
	if err != nil {
		return err
	}
	sums, err := d.Sums()
	if err != nil {
		return err
	}
	s.listed, s.changed, s.all = time.Now(), map[string]string{}, ""
	for name, sum := range s.pinned {
		switch now, there := sums[name]; {
		case !there:
			s.changed[name] = "its server no longer lists this tool as it did"
		case now != sum:
			s.changed[name] = "its server changed the definition of this tool"
		}
	}
	whole := canon.Sum(raw)
	if whole != s.whole && d.Server.Name != s.server {
		s.all = fmt.Sprintf("its server calls itself %q and not %q", d.Server.Name, s.server)
	}
	s.tell(whole, raw)
	return nil
}

// tell reports a definition that is not the approved one, and the approved one after another.
func (s *server) tell(whole string, raw []byte) {
	if whole == s.whole && s.told == "" || whole == s.told || time.Since(s.toldAt) < s.runner.opts.Recheck {
		return
	}
	s.told, s.toldAt = whole, time.Now()
	if whole == s.whole {
		s.told = ""
	}
	s.runner.drifted(s, raw)
}

// pins reads what was approved. The caller has the turn.
func (s *server) pins() error {
	raw, err := os.ReadFile(filepath.Join(s.pkg.Dir, s.manifest.Dir, File))
	if err != nil {
		return plugin.Errorf(plugin.CodeInternal, "what was approved of its server cannot be read: %w", err)
	}
	d, err := Parse(raw)
	if err != nil {
		return err
	}
	sums, err := d.Sums()
	if err != nil {
		return err
	}
	s.pinned, s.whole, s.server = sums, canon.Sum(raw), d.Server.Name
	return nil
}

// unreachable says why there is no answer of the server.
func (s *server) unreachable(ctx context.Context, err error) error {
	var ours *plugin.Error
	var theirs *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &ours): // of the dialer, or of what inserts credentials
		return ours
	case answered(ctx, err) && errors.As(err, &theirs):
		return &plugin.Error{Code: plugin.CodePluginError, PluginCode: fmt.Sprint(theirs.Code), Message: "its server answered: " + clip(theirs.Message, maxMessage)}
	}
	return &plugin.Error{Code: plugin.CodeUnavailable, Message: "its server gave no proper answer: " + clip(err.Error(), maxMessage), Retryable: true, RetryAfter: time.Second, Err: err}
}

const maxMessage = 2_000
