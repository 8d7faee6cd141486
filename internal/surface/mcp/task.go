package mcp

import (
	"context"
	"encoding/json"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// TasksExtension is the extension by which a client polls for the result of a call that waits.
// A task is a call of the host: its id is that of the call, which was on record before the client
// heard of it, and any node answers for it.
const TasksExtension = "io.modelcontextprotocol/tasks"

const (
	pollEvery = 2000            // ms that a client leaves between two polls
	pollWait  = 1 * time.Second // that a poll waits; a host without workers runs an approved call then
)

// The states of a task.
const (
	taskWorking   = "working"
	taskCompleted = "completed"
	taskCancelled = "cancelled"
)

// A task is the state of one, and with resultType task the answer that creates it.
type task struct {
	sdk.ResultBase
	ResultType string              `json:"resultType"`
	ID         string              `json:"taskId"`
	Status     string              `json:"status"`
	Message    string              `json:"statusMessage,omitempty"`
	CreatedAt  time.Time           `json:"createdAt"`
	UpdatedAt  time.Time           `json:"lastUpdatedAt"`
	TTL        *int64              `json:"ttlMs"` // null: calls are kept for as long as the host's retention says
	Poll       int64               `json:"pollIntervalMs,omitempty"`
	Result     *sdk.CallToolResult `json:"result,omitempty"`
}

// taskParams are those of tasks/get, tasks/update and tasks/cancel.
type taskParams struct {
	sdk.ParamsBase
	ID        string          `json:"taskId"`
	Responses json.RawMessage `json:"inputResponses,omitempty"`
}

// acknowledged is an empty result.
type acknowledged struct {
	sdk.ResultBase
	ResultType string `json:"resultType"`
}

// takesTasks reports whether a client said with this request that it takes tasks.
func takesTasks(r *sdk.CallToolRequest) bool {
	c := r.ClientCapabilities()
	if c == nil {
		return false
	}
	_, takes := c.Extensions[TasksExtension]
	return takes
}

// created answers a call that waits with a task.
func (s *session) created(ctx context.Context, res plugin.Result) sdk.Result {
	t, err := s.task(ctx, res.CallID)
	if err != nil {
		return s.failure(res, err)
	}
	t.ResultType, t.Result = "task", nil
	return t
}

// task returns the task of a call that the caller may be told of.
func (s *session) task(ctx context.Context, id string) (*task, error) {
	row, err := s.api.Calls().Get(ctx, id, "see")
	if err == nil && (row == nil || !s.mine(row)) {
		err = host.MissingCall(id)
	}
	if err != nil {
		return nil, err
	}
	res, failed := s.api.Calls().Standing(ctx, id)
	if !res.Status.Ended() && failed != nil && plugin.CodeOf(failed) == plugin.CodeInternal {
		return nil, failed
	}
	t := &task{ResultType: "complete", ID: id, Status: taskWorking, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, Poll: pollEvery}
	switch {
	case row.State == host.CallPending:
		t.Message = "waits for a person's approval"
		if res.Approval != nil && s.Base != "" {
			t.Message += " at " + s.Base + "/decide/" + res.Approval.ID
		}
		return t, nil
	}
	if res, failed = s.outcome(ctx, id, pollWait); failed == nil && !res.Status.Ended() {
		return t, nil
	}
	if plugin.CodeOf(failed) == plugin.CodeCancelled {
		t.Status = taskCancelled
		return t, nil
	}
	t.Status, t.Result = taskCompleted, s.result(revision(newestRevision), nil, res, failed)
	return t, nil
}

// revision answers for a request of the newest revision.
type revision string

// ProtocolVersion is the revision.
func (r revision) ProtocolVersion() string { return string(r) }

// serveTasks adds the methods of the extension to a server.
func (s *session) serveTasks(server *sdk.Server) error {
	get := func(ctx context.Context, _ *sdk.ServerSession, p *taskParams) (*task, error) {
		t, err := s.task(ctx, p.ID)
		if err != nil {
			return nil, s.unknownTask(err)
		}
		return t, nil
	}
	update := func(ctx context.Context, _ *sdk.ServerSession, p *taskParams) (*acknowledged, error) {
		if _, err := s.task(ctx, p.ID); err != nil {
			return nil, s.unknownTask(err)
		}
		return &acknowledged{ResultType: "complete"}, nil // a task of this host asks nothing, and answers to nothing are ignored
	}
	cancel := func(ctx context.Context, _ *sdk.ServerSession, p *taskParams) (*acknowledged, error) {
		t, err := s.task(ctx, p.ID)
		if err == nil && t.Status == taskWorking {
			_, err = s.api.Calls().Cancel(ctx, p.ID, "cancelled by the client")
		}
		if err != nil {
			return nil, s.unknownTask(err)
		}
		return &acknowledged{ResultType: "complete"}, nil
	}
	if err := sdk.AddReceivingCustomMethod(server, "tasks/get", get); err != nil {
		return err
	}
	if err := sdk.AddReceivingCustomMethod(server, "tasks/update", update); err != nil {
		return err
	}
	return sdk.AddReceivingCustomMethod(server, "tasks/cancel", cancel)
}

// unknownTask is the error for a task that there is not, or is not for the caller.
func (s *session) unknownTask(err error) error {
	if code := plugin.CodeOf(err); code == plugin.CodeNotFound || code == plugin.CodePolicyDenied || code == plugin.CodeInvalidInput {
		return wrongParams("there is no such task")
	}
	return s.failed(err)
}
