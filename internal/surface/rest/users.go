package rest

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
)

// A User is a person.
type User struct {
	ID           string         `json:"id"`
	Principal    string         `json:"principal"`
	Identities   []UserIdentity `json:"identities" nullable:"false" doc:"All of them are one person where an approval takes a second."`
	By           string         `json:"by" doc:"The principal that created the user."`
	CreatedAt    time.Time      `json:"created_at"`
	DisabledAt   time.Time      `json:"disabled_at,omitzero"`
	InvitedUntil time.Time      `json:"invited_until,omitzero" doc:"An invitation is open."`
	Groups       []string       `json:"groups,omitempty" doc:"Those that providers gave where they are signed in with a browser now."`
}

// A UserIdentity is one way in which a person is authenticated.
type UserIdentity struct {
	Name       string    `json:"name" doc:"As approvals and tokens have it."`
	Issuer     string    `json:"issuer,omitzero"`
	Subject    string    `json:"subject,omitzero"`
	LinkedAt   time.Time `json:"linked_at"`
	UnlinkedAt time.Time `json:"unlinked_at,omitzero" doc:"It signs no one in since; it stays theirs."`
	InvitedBy  string    `json:"invited_by,omitzero" doc:"Who has seen the secret that linked it. They are no second person beside it, until its holder says at /auth/ that it is theirs alone."`
}

// Users are all people.
type Users struct {
	Users []User `json:"users" nullable:"false"`
}

// An Invited is a user with the secret of an invitation, which is told once.
type Invited struct {
	User
	Secret string `json:"secret" doc:"The fragment of the address /auth/invitation, at which the person signs in."`
}

// A Browser is a session of a browser in which the caller is signed in.
type Browser struct {
	ID         string    `json:"id"`
	Current    bool      `json:"current" doc:"It sent this request."`
	Identity   string    `json:"identity" doc:"The identity that signed in."`
	Groups     []string  `json:"groups" nullable:"false" doc:"Those that the provider gave, beside the ones that mortise.yaml names the caller in."`
	CreatedAt  time.Time `json:"created_at"`
	SignedInAt time.Time `json:"signed_in_at,omitzero" doc:"When they last proved who they are; it is left out where their provider does not say."`
	ExpiresAt  time.Time `json:"expires_at"`
	UsedAt     time.Time `json:"used_at,omitzero" doc:"To the minute."`
	UsedFrom   string    `json:"used_from,omitzero"`
}

// A BrowserEnded is a session that has ended.
type BrowserEnded struct {
	ID string `json:"id"`
}

// Browsers are all browsers in which the caller is signed in.
type Browsers struct {
	Browsers []Browser `json:"browsers" nullable:"false"`
}

func userOf(u host.User) User {
	v := User{ID: u.ID, Principal: u.Principal, Identities: []UserIdentity{}, By: u.By, CreatedAt: u.CreatedAt, DisabledAt: u.DisabledAt, InvitedUntil: u.InvitedUntil, Groups: u.Groups}
	for _, id := range u.Identities {
		v.Identities = append(v.Identities, UserIdentity(id))
	}
	return v
}

type userPath struct {
	ID string `path:"id" maxLength:"255" doc:"The id or the principal of the user."`
}

type userAnswer struct{ Body User }

func (r *registry) users() {
	add(r, route{method: "GET", path: "users", id: "list-users", scope: host.ScopeConfigure, about: "All people, where policy lets the caller configure users"},
		func(ctx context.Context, q *request, _ *struct{}) (*struct{ Body Users }, error) {
			listed, err := q.api.Users().List(ctx)
			if err != nil {
				return nil, err
			}
			out := &struct{ Body Users }{Users{[]User{}}}
			for _, u := range listed {
				out.Body.Users = append(out.Body.Users, userOf(u))
			}
			return out, nil
		})
	add(r, route{method: "POST", path: "users", id: "create-user", scope: host.ScopeAdmin, about: "Create the user of a principal"},
		func(ctx context.Context, q *request, in *struct {
			Body struct {
				Principal string `json:"principal" minLength:"1" maxLength:"255" doc:"Whom the configuration names."`
				OSUser    string `json:"os_user,omitzero" maxLength:"255" doc:"The name or number of their user of the operating system; on the socket of the owner alone."`
			}
		}) (*userAnswer, error) {
			if err := q.owns("os_user", in.Body.OSUser != ""); err != nil {
				return nil, err
			}
			return userAnswered(q.api.Users().Create(ctx, in.Body.Principal, in.Body.OSUser))
		})
	add(r, route{method: "GET", path: "users/{id}", id: "get-user", scope: host.ScopeConfigure, about: "One person"},
		func(ctx context.Context, q *request, in *userPath) (*userAnswer, error) {
			return userAnswered(q.api.Users().Show(ctx, in.ID))
		})
	add(r, route{method: "POST", path: "users/{id}:disable", id: "disable-user", scope: host.ScopeAdmin, about: "End the sessions of a person, and refuse their tokens and sign-ins"},
		func(ctx context.Context, q *request, in *userPath) (*userAnswer, error) {
			return userAnswered(q.api.Users().Disable(ctx, in.ID))
		})
	add(r, route{method: "POST", path: "users/{id}:enable", id: "enable-user", scope: host.ScopeAdmin, about: "Let a person sign in again"},
		func(ctx context.Context, q *request, in *userPath) (*userAnswer, error) {
			return userAnswered(q.api.Users().Enable(ctx, in.ID))
		})
	add(r, route{method: "POST", path: "users/{id}:invite", id: "invite-user", scope: host.ScopeAdmin, about: "Make an invitation, by which an account becomes the person's"},
		func(ctx context.Context, q *request, in *userPath) (*struct{ Body Invited }, error) {
			u, secret, err := q.api.Users().Invite(ctx, in.ID)
			return &struct{ Body Invited }{Invited{userOf(u), secret}}, err
		})
	add(r, route{method: "POST", path: "users/{id}:unlink", id: "unlink-user-identity", scope: host.ScopeAdmin, about: "Have an identity sign a person in no more"},
		func(ctx context.Context, q *request, in *struct {
			ID   string `path:"id" maxLength:"255" doc:"The id or the principal of the user."`
			Body struct {
				Identity string `json:"identity" minLength:"1" maxLength:"4096"`
			}
		}) (*userAnswer, error) {
			return userAnswered(q.api.Users().Unlink(ctx, in.ID, in.Body.Identity))
		})
	r.browsers()
}

func userAnswered(u host.User, err error) (*userAnswer, error) {
	if err != nil {
		return nil, err
	}
	return &userAnswer{userOf(u)}, nil
}

func (r *registry) browsers() {
	add(r, route{method: "GET", path: "browsers", id: "list-browsers", scope: host.ScopeRead, about: "The browsers in which the caller is signed in"},
		func(ctx context.Context, q *request, _ *struct{}) (*struct{ Body Browsers }, error) {
			listed, err := q.api.Browsers().List(ctx)
			if err != nil {
				return nil, err
			}
			out := &struct{ Body Browsers }{Browsers{[]Browser{}}}
			for _, b := range listed {
				out.Body.Browsers = append(out.Body.Browsers, Browser(b))
			}
			return out, nil
		})
	add(r, route{method: "POST", path: "browsers/{id}:end", id: "end-browser", scope: host.ScopeRun, about: "Sign the caller out of a browser"},
		func(ctx context.Context, q *request, in *struct {
			ID string `path:"id" maxLength:"64"`
		}) (*struct{ Body BrowserEnded }, error) {
			if err := q.api.Browsers().End(ctx, in.ID); err != nil {
				return nil, unlessMissing(err, "session", in.ID)
			}
			return &struct{ Body BrowserEnded }{BrowserEnded{in.ID}}, nil
		})
}
