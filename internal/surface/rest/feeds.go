package rest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A Feed is an operation that runs at set times.
type Feed struct {
	ID        string          `json:"id"`
	Owner     string          `json:"owner" doc:"In whose name it runs."`
	Operation string          `json:"operation" doc:"plugin/operation"`
	Input     json.RawMessage `json:"input"`
	Host      json.RawMessage `json:"host,omitzero" doc:"What the host alone decides about its runs."`
	Spec      string          `json:"spec" doc:"every 15m, or cron and five fields."`
	Zone      string          `json:"zone"`
	Misfire   string          `json:"misfire" enum:"skip,once,catch_up" doc:"Of times at which nothing served."`
	CatchUp   int             `json:"catch_up,omitzero"`
	Overlap   string          `json:"overlap" enum:"skip,queue" doc:"Of times that come while a run is not over."`
	State     string          `json:"state" enum:"active,paused"`
	Next      *time.Time      `json:"next,omitzero" doc:"None while it is paused." nullable:"false"`
	LastCall  string          `json:"last_call,omitzero"`
	CreatedAt time.Time       `json:"created_at"`
}

// A FeedListed is a feed, and why its runs would be refused.
type FeedListed struct {
	Feed
	Problem string `json:"problem,omitzero" doc:"Why no run can be made now."`
}

// Feeds are a page of them.
type Feeds struct {
	Feeds []FeedListed `json:"feeds" nullable:"false"`
	Next  string       `json:"next_page_token" doc:"Empty on the last page."`
}

// FeedRuns are the times of a feed.
type FeedRuns struct {
	Next    []time.Time `json:"next" nullable:"false" doc:"The next five, paused or not."`
	Last    []FeedRun   `json:"last" nullable:"false" doc:"The last ten, the newest first."`
	Problem string      `json:"problem,omitzero" doc:"Why no run can be made now."`
}

// A FeedRun is what became of one time of a feed.
type FeedRun struct {
	At      time.Time  `json:"at"`
	Since   *time.Time `json:"since,omitzero" doc:"The first of the times that it stands for." nullable:"false"`
	Outcome string     `json:"outcome"`
	CallID  string     `json:"call_id,omitzero"`
	Status  string     `json:"status,omitzero" doc:"Of that call."`
	Code    string     `json:"code,omitzero" doc:"Why there is no call, or how it failed."`
}

// A FeedSpec is a feed that is to be.
type FeedSpec struct {
	Operation string          `json:"operation" maxLength:"256" doc:"plugin/operation, or a plugin whose default for feeds is meant."`
	Input     json.RawMessage `json:"input,omitzero" doc:"By the input schema of the operation."`
	Times
	Misfire   string   `json:"misfire,omitzero" enum:"skip,once,catch_up"`
	CatchUp   int      `json:"catch_up,omitzero" minimum:"1" maximum:"100" doc:"How many of the last missed times are run with the misfire catch_up."`
	Overlap   string   `json:"overlap,omitzero" enum:"skip,queue"`
	OCR       string   `json:"ocr,omitzero" enum:"always,auto,fallback,never" doc:"When text is read from images."`
	Knowledge []string `json:"knowledge_bases,omitzero" maxItems:"64" nullable:"false" doc:"The knowledge bases that it is about."`
}

// A FeedPatch is what a feed is to be. What is left out stays as it is.
type FeedPatch struct {
	Input json.RawMessage `json:"input,omitzero" doc:"In place of the one that it has; with __host, in place of what the host decides too."`
	Times
	Misfire   string   `json:"misfire,omitzero" enum:"skip,once,catch_up"`
	CatchUp   int      `json:"catch_up,omitzero" minimum:"1" maximum:"100" doc:"How many of the last missed times are run with the misfire catch_up."`
	Overlap   string   `json:"overlap,omitzero" enum:"skip,queue"`
	OCR       string   `json:"ocr,omitzero" enum:"always,auto,fallback,never" doc:"When text is read from images."`
	Knowledge []string `json:"knowledge_bases,omitzero" maxItems:"64" nullable:"false" doc:"The knowledge bases that it is about."`
	Cursor    string   `json:"cursor,omitzero" enum:"keep,reset" doc:"What becomes of its cursors: they are kept, as where this is left out, or reset once."`
}

// Times are when a feed runs.
type Times struct {
	Spec string `json:"spec,omitzero" maxLength:"256" doc:"every 15m, or cron and five fields; every 1h where it is left out."`
	Zone string `json:"zone,omitzero" maxLength:"64" doc:"Of a cron expression; UTC where it is left out."`
}

// A FeedNamed is a feed that is meant.
type FeedNamed struct {
	ID string `path:"id" maxLength:"64"`
}

// A FeedChanged is a feed that is to change.
type FeedChanged struct {
	FeedNamed
	Match
}

func feedOf(f host.Feed) Feed {
	return Feed{
		f.ID, f.Owner, f.Operation, f.Input, f.Overlay, f.Spec, f.Zone, string(f.Misfire), f.CatchUp, string(f.Overlap), string(f.State), f.Next, f.LastCall, f.CreatedAt,
	}
}

func (r *registry) feeds() {
	add(r, route{method: "GET", path: "feeds", id: "list-feeds", scope: host.ScopeRead, about: "The feeds that the caller may see, the newest first"}, r.listFeeds)
	add(r, route{method: "POST", path: "feeds", id: "create-feed", scope: host.ScopeRun, about: "Have an operation run at set times, in the name of the caller"}, r.createFeed)
	add(r, route{method: "GET", path: "feeds/{id}", id: "get-feed", scope: host.ScopeRead, about: "A feed"}, r.getFeed)
	add(r, route{method: "GET", path: "feeds/{id}/runs", id: "get-feed-runs", scope: host.ScopeRead, about: "The next times of a feed, and the last ones"}, r.getRuns)
	add(r, route{method: "PATCH", path: "feeds/{id}", id: "change-feed", scope: host.ScopeRun, about: "Give a feed other times or another input; its owner alone may"}, r.patchFeed)
	add(r, route{method: "DELETE", path: "feeds/{id}", id: "delete-feed", scope: host.ScopeConfigure, about: "Delete a feed, its times and its cursors; a run that was begun goes on"}, r.changeFeed(host.Feeds.Delete))
	add(r, route{method: "POST", path: "feeds/{id}:pause", id: "pause-feed", scope: host.ScopeConfigure, about: "Let a feed make no more runs"}, r.changeFeed(host.Feeds.Pause))
	add(r, route{method: "POST", path: "feeds/{id}:resume", id: "resume-feed", scope: host.ScopeConfigure, about: "Let a feed go on with the times that come from now on"}, r.changeFeed(host.Feeds.Resume))
	add(r, route{method: "POST", path: "feeds/{id}:reset", id: "reset-feed", scope: host.ScopeConfigure, about: "Delete how far a feed got, so that it starts over"}, r.changeFeed(host.Feeds.ResetCursor))
	add(r, route{method: "POST", path: "feeds/{id}:run", id: "run-feed", scope: host.ScopeRun, accepts: true, about: "Make a run of a feed now, in the name of its owner"}, r.runFeed)
	add(r, route{method: "POST", path: "agents/{id}/feeds", id: "create-agent-feed", scope: host.ScopeConfigure, about: "Have an agent asked at set times, in the name of the caller; the token needs the scope run too"}, r.askAtTimes)
}

func (r *registry) listFeeds(ctx context.Context, q *request, in *struct{ Page }) (*struct{ Body Feeds }, error) {
	last, err := in.after("feeds")
	if err != nil {
		return nil, err
	}
	all, err := q.api.Feeds().List(ctx)
	if err != nil {
		return nil, err
	}
	all = from(all, last, func(f *host.Feed) string { return f.ID })
	out := &struct{ Body Feeds }{Feeds{Feeds: []FeedListed{}}}
	all, out.Body.Next = cut(all, in.size(), "", func(f *host.Feed) string { return f.ID }, "feeds")
	for _, f := range all {
		out.Body.Feeds = append(out.Body.Feeds, FeedListed{feedOf(f), told(f.Problem)})
	}
	return out, nil
}

// feed returns a feed as it is answered.
func (q *request) feed(id string) func(ctx context.Context) (Feed, error) {
	return func(ctx context.Context) (Feed, error) {
		f, _, _, err := q.api.Feeds().Show(ctx, id)
		return feedOf(f), unlessMissing(err, "feed", id)
	}
}

func (r *registry) getFeed(ctx context.Context, q *request, in *struct {
	FeedNamed
	Seen
}) (*Tagged[Feed], error) {
	f, err := q.feed(in.ID)(ctx)
	if err != nil {
		return nil, err
	}
	return tagged(q, f)
}

func (r *registry) getRuns(ctx context.Context, q *request, in *FeedNamed) (*struct{ Body FeedRuns }, error) {
	f, next, last, err := q.api.Feeds().Show(ctx, in.ID)
	if err != nil {
		return nil, unlessMissing(err, "feed", in.ID)
	}
	out := &struct{ Body FeedRuns }{FeedRuns{append([]time.Time{}, next...), []FeedRun{}, told(f.Problem)}}
	for _, tick := range last {
		out.Body.Last = append(out.Body.Last, FeedRun{tick.At, tick.Since, string(tick.Outcome), tick.Call, tick.Status, tick.Code})
	}
	return out, nil
}

func (r *registry) createFeed(ctx context.Context, q *request, in *struct{ Body FeedSpec }) (*Tagged[Feed], error) {
	s := in.Body
	f, err := q.api.Feeds().Create(ctx, host.NewFeed{
		Plugin: s.Operation, Spec: s.Spec, Zone: s.Zone, Misfire: host.Misfire(s.Misfire), CatchUp: s.CatchUp, Overlap: host.Overlap(s.Overlap), OCR: s.OCR, Knowledge: s.Knowledge,
		Input: func(*plugin.Target) (json.RawMessage, error) { return s.Input, nil },
	})
	if err != nil {
		return nil, unlessMissing(err, "operation", s.Operation)
	}
	return tagged(q, feedOf(f))
}

// changeFeed is a change that takes no more than the feed's id.
func (r *registry) changeFeed(do func(host.Feeds, context.Context, string) (host.Feed, error)) func(context.Context, *request, *FeedChanged) (*Tagged[Feed], error) {
	return func(ctx context.Context, q *request, in *FeedChanged) (*Tagged[Feed], error) {
		f, err := change(ctx, q, host.Thing{Noun: host.AFeed, ID: in.ID}, q.feed(in.ID), func(ctx context.Context) (Feed, error) {
			f, err := do(q.api.Feeds(), ctx, in.ID)
			return feedOf(f), unlessMissing(err, "feed", in.ID)
		})
		if err != nil {
			return nil, err
		}
		return tagged(q, f)
	}
}

func (r *registry) patchFeed(ctx context.Context, q *request, in *struct {
	FeedChanged
	Body FeedPatch
}) (*Tagged[Feed], error) {
	p := in.Body
	c := host.FeedChange{
		Spec: p.Spec, Zone: p.Zone, Misfire: host.Misfire(p.Misfire), CatchUp: p.CatchUp, Overlap: host.Overlap(p.Overlap), OCR: p.OCR, Knowledge: p.Knowledge, Cursor: host.CursorChoice(p.Cursor),
	}
	if len(p.Input) > 0 {
		c.Input = func(*plugin.Target, json.RawMessage) (json.RawMessage, error) { return p.Input, nil }
	}
	f, err := change(ctx, q, host.Thing{Noun: host.AFeed, ID: in.ID}, q.feed(in.ID), func(ctx context.Context) (Feed, error) {
		f, err := q.api.Feeds().Change(ctx, in.ID, c)
		return feedOf(f), unlessMissing(err, "feed", in.ID)
	})
	if err != nil {
		return nil, err
	}
	return tagged(q, f)
}

func (r *registry) runFeed(ctx context.Context, q *request, in *FeedNamed) (*Answered, error) {
	res, err := q.api.Feeds().Run(ctx, in.ID)
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		return nil, missing("feed", in.ID)
	}
	return answered(res, err, false, false)
}

func (r *registry) askAtTimes(ctx context.Context, q *request, in *struct {
	AgentNamed
	Body struct {
		Text string `json:"text" minLength:"1" maxLength:"65536" doc:"The message."`
		Times
	} `nameHint:"AgentFeedSpec"`
}) (*Tagged[Feed], error) {
	f, err := q.api.Agents().Schedule(ctx, in.ID, in.Body.Text, in.Body.Spec, in.Body.Zone)
	if err != nil {
		return nil, unlessMissing(err, "agent", in.ID)
	}
	return tagged(q, feedOf(f))
}
