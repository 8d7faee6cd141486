package client

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// The nouns that commands use, as package host has them. What a method promises is said
// there.

// Accounts are [host.Accounts].
type Accounts interface {
	Begin(ctx context.Context, provider string, scopes []string) (*Connecting, error)
	List(ctx context.Context) ([]host.AccountState, error)
	Remove(ctx context.Context, provider string) (host.Removal, error)
	Test(ctx context.Context, provider, mode, subject string, scopes []string) (host.Tried, error)
}

// A Connecting is an account that is being connected.
type Connecting struct {
	URL   string // where a browser goes
	Wait  func(ctx context.Context) (host.Account, error)
	Close func() error // gives it up, where it is not connected yet
}

// Admin are [host.Admin].
type Admin interface {
	ApplyRetention(ctx context.Context) ([]host.RetentionState, error)
	ConfirmRecovery(ctx context.Context, reason string) (host.Recovery, error)
	Erase(ctx context.Context, principal string, dry bool) (host.Erasure, error)
	Erasures(ctx context.Context) ([]host.Erasure, error)
	MayBackup(ctx context.Context) error
	Recovery(ctx context.Context) (host.RecoveryStatus, error)
	Retention(ctx context.Context) ([]host.RetentionState, error)
}

// Agents are [host.Agents].
type Agents interface {
	Assign(ctx context.Context, ref, id string, enabled bool) (host.Assignment, error)
	Assignments(ctx context.Context, id string) (map[string]host.Assignment, error)
	Change(ctx context.Context, id string, c host.AgentChange) (host.Agent, error)
	Conversations(ctx context.Context, id string, limit int) ([]host.Conversation, error)
	Create(ctx context.Context, n host.NewAgent) (host.Agent, error)
	End(ctx context.Context, id, session string) (host.Conversation, error)
	Forget(ctx context.Context, id, key string) error
	List(ctx context.Context) ([]host.Agent, error)
	Memories(ctx context.Context, id, words string, limit int) ([]host.Memory, error)
	Messages(ctx context.Context, id, session string, limit int) (host.Conversation, []host.Spoken, error)
	Remember(ctx context.Context, id, key, text string) error
	Schedule(ctx context.Context, id, prompt, spec, zone string) (host.Feed, error)
	Show(ctx context.Context, id string) (host.AgentShown, error)
	Talk(ctx context.Context, id, session string, fresh bool) (Talk, error)
	Start(ctx context.Context, id string) (host.Agent, error)
	Stop(ctx context.Context, id string) (host.Agent, error)
	Delete(ctx context.Context, id string) (host.Agent, error)
}

// Adapters are [host.Adapters].
type Adapters interface {
	Deliver(ctx context.Context, n host.NewDelivery) (*host.Plan, error)
}

// Approvals are [host.Approvals].
type Approvals interface {
	Answer(ctx context.Context, given string, approve, own bool, reason string) (host.Asked, error)
	Questions(ctx context.Context, all bool, last int) ([]*host.Question, error)
	Asked(ctx context.Context, given string) (host.Asked, error)
}

// Calls are [host.Calls].
type Calls interface {
	Cancel(ctx context.Context, id, reason string) (*host.CallRow, error)
	Find(ctx context.Context, given, action string) (*host.CallRow, error)
	FindToControl(ctx context.Context, given, action string) (*host.CallRow, error)
	Follow(ctx context.Context, id string, show func(*plugin.Entry)) (over bool, err error)
	List(ctx context.Context, f host.CallFilter) ([]host.CallRow, error)
	ListIn(ctx context.Context, f host.CallFilter, status plugin.Status) ([]host.CallRow, error)
	Show(ctx context.Context, given string) (host.CallShown, error)
	Standing(ctx context.Context, id string) (plugin.Result, error)
	Wait(ctx context.Context, id string, w host.Waiting) (plugin.Result, error)
	Settle(ctx context.Context, id string, s host.Settlement) (*host.CallRow, error)
	Reconcile(ctx context.Context, id string) (*host.CallRow, error)
}

// Feeds are [host.Feeds].
type Feeds interface {
	Change(ctx context.Context, id string, c host.FeedChange) (host.Feed, error)
	Create(ctx context.Context, n host.NewFeed) (host.Feed, error)
	Find(ctx context.Context, given string) (string, error)
	List(ctx context.Context) ([]host.Feed, error)
	Run(ctx context.Context, id string) (plugin.Result, error)
	Show(ctx context.Context, id string) (feed host.Feed, next []time.Time, last []host.FeedTick, err error)
	Pause(ctx context.Context, id string) (host.Feed, error)
	Resume(ctx context.Context, id string) (host.Feed, error)
	ResetCursor(ctx context.Context, id string) (host.Feed, error)
	Delete(ctx context.Context, id string) (host.Feed, error)
}

// Identities are [host.Identities].
type Identities interface {
	List(ctx context.Context) ([]host.Identity, error)
	Unlink(ctx context.Context, provider, externalID string) (host.Identity, error)
	LinkFor(ctx context.Context, adapter, provider, externalID, to string, scopes ...string) (host.Identity, error)
}

// Knowledge are [host.Knowledge].
type Knowledge interface {
	Create(ctx context.Context, base host.KnowledgeBase) (host.KnowledgeBase, error)
	Delete(ctx context.Context, id string) (host.KnowledgeBase, error)
	Documents(ctx context.Context, l host.Documents) ([]host.Document, error)
	Embed(ctx context.Context, id string, by host.OnBehalf) (host.Embedded, error)
	FindAndRemove(ctx context.Context, base, given string) (host.Document, error)
	FindDocument(ctx context.Context, base, given string) (host.Document, error)
	Get(ctx context.Context, id string) (host.KnowledgeBase, error)
	Ingest(ctx context.Context, s host.Source) (host.Ingested, error)
	List(ctx context.Context) ([]host.KnowledgeBase, error)
	Search(ctx context.Context, q host.Query) ([]host.Hit, error)
}

// Ledger are [host.Ledger].
type Ledger interface {
	Find(ctx context.Context, given string) ([]plugin.Entry, error)
	List(ctx context.Context, q host.EntryQuery) (entries []plugin.Entry, chains int, err error)
}

// Models are [host.Models].
type Models interface {
	List(ctx context.Context) (host.ModelStates, error)
	Test(ctx context.Context, name string) (host.ModelTest, error)
}

// Offers are [host.Offers].
type Offers interface {
	Calls(ctx context.Context) ([]host.Offer, error)
	Plans(ctx context.Context) ([]host.Offer, error)
	Approvals(ctx context.Context) ([]host.Offer, error)
	Feeds(ctx context.Context) ([]host.Offer, error)
	Agents(ctx context.Context) ([]host.Offer, error)
	Memories(ctx context.Context, agent string) ([]host.Offer, error)
	Conversations(ctx context.Context, agent string) ([]host.Offer, error)
}

// Plans are [host.Plans].
type Plans interface {
	Cancel(ctx context.Context, id, reason string) (*host.Plan, error)
	Get(ctx context.Context, id, action string) (*host.Plan, error)
	List(ctx context.Context, f host.PlanFilter) ([]host.Plan, error)
	Resume(ctx context.Context, id string) (*host.Plan, error)
	Submit(ctx context.Context, n host.NewPlan) (*host.Plan, error)
	Wait(ctx context.Context, id string, show func(host.PlanStep)) (*host.Plan, error)
}

// Plugins are [host.Plugins].
type Plugins interface {
	Actions(ctx context.Context, ref string) ([]host.Action, error)
	Approve(ctx context.Context, seen host.PluginReview) (host.PluginInfo, error)
	Delete(ctx context.Context, ref string) (host.PluginInfo, error)
	Disable(ctx context.Context, ref string) ([]host.PluginInfo, error)
	Enable(ctx context.Context, ref string) (host.PluginInfo, error)
	Environment(ctx context.Context, ref, from string) (host.RegisteredPlugin, error)
	Link(ctx context.Context, path string) (string, error)
	List(ctx context.Context, kinds ...plugin.Kind) ([]host.PluginInfo, error)
	Needs(ctx context.Context, name string) (host.PluginNeeds, error)
	Operation(ctx context.Context, ref string, input json.RawMessage) (string, *plugin.Target)
	Map(ctx context.Context, ref string, word *host.MappingWord) (host.PluginInfo, error)
	Refresh(ctx context.Context, ref string) (host.RegisteredPlugin, error)
	Register(ctx context.Context, path string, o host.RegisterOptions) (host.Registered, error)
	RemoveEnvironment(ctx context.Context, ref string) (host.RegisteredPlugin, error)
	Review(ctx context.Context, ref string, ask bool) (host.PluginReview, error)
	Rollback(ctx context.Context, ref string) (left, back host.PluginInfo, err error)
	Route(ctx context.Context, q host.RouteQuery) (host.Route, error)
	Show(ctx context.Context, ref string) (host.PluginShown, error)
	Subscribe(ctx context.Context, name string) (host.PluginNeeds, error)
	Unsubscribe(ctx context.Context, name string) (host.PluginNeeds, error)
}

// Policies are [host.Policies].
type Policies interface {
	Ask(ctx context.Context, r host.PolicyRequest) (plugin.Decision, error)
	Delete(ctx context.Context, name, was string) (host.PolicyChange, error)
	Explain(ctx context.Context, r host.PolicyRequest) (host.PolicyExplanation, error)
	Set(ctx context.Context) (texts []host.PolicyText, version string, err error)
	Put(ctx context.Context, name string, text []byte, was string) (host.PolicyChange, error)
	Try(ctx context.Context, documents []host.PolicyDocument, requests io.Reader, name string) (host.Simulation, error)
}

// References are [host.References].
type References interface {
	Add(ctx context.Context, key, file string) (host.ReferenceKey, error)
	Put(ctx context.Context, key, form string, text []byte) (host.ReferenceKey, error)
	AddMitre(ctx context.Context, files ...string) (key host.ReferenceKey, counts map[string]int, err error)
	List() ([]host.ReferenceKey, error)
	Remove(ctx context.Context, key string) error
}

// Secrets are [host.Secrets].
type Secrets interface {
	Check(ctx context.Context, name string) ([]host.SecretState, error)
	Delete(ctx context.Context, p host.SecretPlace) (host.SecretInfo, error)
	DeleteAll(ctx context.Context) (int, error)
	List(ctx context.Context) ([]host.SecretInfo, error)
	Rotate(ctx context.Context) (host.SecretRotation, error)
	Set(ctx context.Context, p host.SecretPlace, value string) (host.SecretInfo, error)
}

// Sessions are [host.Sessions].
type Sessions interface {
	AddArtifact(ctx context.Context, in string, r io.Reader, a host.NewArtifact) (host.Artifact, error)
	AddDirectory(ctx context.Context, in, name string, files []host.LaidFile, a host.NewArtifact) (host.Artifact, error)
	AddFile(ctx context.Context, in, path string, a host.NewArtifact) (host.Artifact, error)
	Artifacts(ctx context.Context, in string) ([]host.Artifact, error)
	AtHand(ctx context.Context, q *host.RouteQuery, in string) ([]host.Artifact, error)
	Close(ctx context.Context, id string) (host.Session, error)
	Create(ctx context.Context, o host.NewSession) (host.Session, error)
	Delete(ctx context.Context, id string) (host.Session, error)
	Find(ctx context.Context, given string) (host.Session, error)
	FindArtifact(ctx context.Context, in, given string) (host.Artifact, error)
	For(ctx context.Context, t *plugin.Target, id string) (host.Session, error)
	List(ctx context.Context) ([]host.Session, error)
	MadeFor(ctx context.Context, in, member, name string, made []plugin.Artifact) (id string, err error)
	OpenArtifact(ctx context.Context, in, name string) (io.ReadCloser, error)
	Resume(ctx context.Context, id string) (host.Session, error)
	View(ctx context.Context, in string) (host.SessionView, error)
	Get(ctx context.Context, id string) (host.Session, error)
	Artifact(ctx context.Context, in, name string) (host.Artifact, error)
}

// Tokens are [host.Tokens].
type Tokens interface {
	Create(ctx context.Context, n host.NewToken) (host.Token, string, error)
	List(ctx context.Context) ([]host.Token, error)
	Revoke(ctx context.Context, id string) (host.Token, error)
}

// Users are [host.Users].
type Users interface {
	Create(ctx context.Context, name, osUser string) (host.User, error)
	Disable(ctx context.Context, name string) (host.User, error)
	Enable(ctx context.Context, name string) (host.User, error)
	Invite(ctx context.Context, name string) (host.User, string, error)
	List(ctx context.Context) ([]host.User, error)
	Show(ctx context.Context, name string) (host.User, error)
	Unlink(ctx context.Context, name, identity string) (host.User, error)
}
