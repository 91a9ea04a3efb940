package handlers

import (
	"encoding/json"
	"time"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/views/link"
)

// The JSON shapes. Times are RFC 3339 in UTC; what is unknown is left out.

type sessionAnswer struct {
	ID           string             `json:"id"`
	URL          string             `json:"url"`
	Title        string             `json:"title"`
	Owner        string             `json:"owner"`
	Repository   repositoryAnswer   `json:"repository"`
	BaseBranch   string             `json:"base_branch"`
	BaseSHA      string             `json:"base_sha"`
	Branch       string             `json:"branch"`
	BashPolicy   string             `json:"bash_policy"`
	Network      string             `json:"network"` // open, allowlist or none
	State        string             `json:"state"`   // of the page's status line
	Archived     bool               `json:"archived"`
	LastSequence int64              `json:"last_sequence"`
	CreatedAt    time.Time          `json:"created_at"`
	UpdatedAt    time.Time          `json:"updated_at"`
	Sandbox      *sandboxAnswer     `json:"sandbox,omitempty"`
	Diff         *diffSummary       `json:"diff,omitempty"`
	PullRequest  *pullAnswer        `json:"pull_request,omitempty"`
	Publication  *publicationAnswer `json:"publication,omitempty"`
	Messages     []messageAnswer    `json:"messages"`
}

type repositoryAnswer struct {
	ID           int64  `json:"id"`
	Installation int64  `json:"installation"`
	FullName     string `json:"full_name"`
}

type sandboxAnswer struct {
	State      string `json:"state"`
	Generation int    `json:"generation"`
	Runtime    string `json:"runtime,omitempty"`
	Code       string `json:"code,omitempty"`
}

type messageAnswer struct {
	ID                string           `json:"id"`
	Role              string           `json:"role"`
	ReplyTo           string           `json:"reply_to,omitempty"`
	Text              string           `json:"text"`
	PartialText       string           `json:"partial_text,omitempty"`
	State             string           `json:"state"`
	Failure           *failure         `json:"failure,omitempty"`
	CancelRequestedAt *time.Time       `json:"cancel_requested_at,omitempty"`
	Model             string           `json:"model,omitempty"`
	Steps             int              `json:"steps,omitempty"`
	Usage             core.Usage       `json:"usage"`
	Limits            *core.TurnLimits `json:"limits,omitempty"`
	CreatedAt         time.Time        `json:"created_at"`
	StartedAt         *time.Time       `json:"started_at,omitempty"`
	FinishedAt        *time.Time       `json:"finished_at,omitempty"`
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type diffSummary struct {
	ID         string    `json:"id"`
	Files      int       `json:"files"`
	Additions  int       `json:"additions"`
	Deletions  int       `json:"deletions"`
	Truncated  bool      `json:"truncated,omitempty"`
	CapturedAt time.Time `json:"captured_at"`
}

type diffAnswer struct {
	diffSummary
	BaseSHA      string             `json:"base_sha"`
	Latest       bool               `json:"latest"`
	ChangedFiles []core.ChangedFile `json:"changed_files"`
	Patch        string             `json:"patch"`
}

type pullAnswer struct {
	Number    int       `json:"number"`
	URL       string    `json:"url"`
	State     string    `json:"state"`
	Draft     bool      `json:"draft"`
	Title     string    `json:"title"`
	HeadSHA   string    `json:"head_sha"`
	Base      string    `json:"base"`
	Behind    int       `json:"behind"` // commits of base that it had not when it was published
	UpdatedAt time.Time `json:"updated_at"`
}

type publicationAnswer struct {
	ID         string     `json:"id"`
	Step       string     `json:"step"`
	Outcome    string     `json:"outcome,omitempty"`
	Number     int        `json:"number,omitempty"`
	CommitSHA  string     `json:"commit_sha,omitempty"`
	Failure    *failure   `json:"failure,omitempty"`
	LeftOut    []string   `json:"left_out,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

type publishAnswer struct {
	Blocked     string             `json:"blocked,omitempty"`
	PullRequest *pullAnswer        `json:"pull_request,omitempty"`
	Publication *publicationAnswer `json:"publication,omitempty"`
}

type eventAnswer struct {
	Sequence  int64           `json:"sequence"`
	Type      string          `json:"type"`
	Producer  string          `json:"producer"`
	MessageID string          `json:"message_id,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	Payload   json.RawMessage `json:"payload"`
}

// sessionJSON answers with the state of a session that the person may view.
func (h *Handlers) sessionJSON(c echo.Context, status int, id core.SessionID) error {
	v, err := h.view(c, id, 0)
	if err != nil {
		return err
	}
	s := v.Session
	a := sessionAnswer{
		ID: v.id(), URL: link.Session(v.id()), Title: s.Title, Owner: v.Owner.Login,
		Repository: repositoryAnswer{int64(s.Repository.ID), int64(s.Repository.InstallationID), s.Repository.FullName()},
		BaseBranch: s.BaseBranch, BaseSHA: s.BaseSHA, Branch: s.Branch, BashPolicy: string(s.BashPolicy),
		Network: string(v.Policy.Mode),
		State:   v.status().State, Archived: s.Archived, LastSequence: s.LastSequence,
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
		PullRequest: pullJSON(v.PullRequest), Publication: publicationJSON(v.Publication),
		Messages: make([]messageAnswer, 0, len(v.Messages)),
	}
	for _, m := range v.Messages {
		a.Messages = append(a.Messages, messageJSON(m))
	}
	if b := v.Sandbox; b != nil {
		a.Sandbox = &sandboxAnswer{string(b.State), b.Generation, b.Runtime, b.FailureCode}
	}
	if d := v.Diff; d != nil {
		a.Diff = summaryJSON(*d, v.Changed)
	}
	return c.JSON(status, a)
}

func messageJSON(m core.Message) messageAnswer {
	a := messageAnswer{
		ID: string(m.ID), Role: string(m.Role), ReplyTo: string(m.ReplyTo), Text: m.Text,
		PartialText: m.PartialText, State: string(m.State), Failure: failureJSON(m.FailureCode, m.FailureText),
		CancelRequestedAt: timeJSON(m.CancelRequestedAt), Model: m.Model, Steps: m.Steps, Usage: m.Usage,
		CreatedAt: m.CreatedAt.UTC(), StartedAt: timeJSON(m.StartedAt), FinishedAt: timeJSON(m.FinishedAt),
	}
	if m.Limits != (core.TurnLimits{}) {
		a.Limits = &m.Limits
	}
	return a
}

func failureJSON(code, message string) *failure {
	if code == "" {
		return nil
	}
	return &failure{code, message}
}

func timeJSON(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func summaryJSON(a core.Artifact, files []core.ChangedFile) *diffSummary {
	additions, deletions := core.Totals(files)
	return &diffSummary{string(a.ID), len(files), additions, deletions, a.Truncated, a.CreatedAt.UTC()}
}

func diffJSON(d chat.Diff) diffAnswer {
	return diffAnswer{
		diffSummary: *summaryJSON(d.Artifact, d.Files), BaseSHA: d.Session.BaseSHA,
		Latest: d.Artifact.ID == d.Latest, ChangedFiles: d.Files, Patch: string(d.Artifact.Data),
	}
}

func pullJSON(p *core.PullRequest) *pullAnswer {
	if p == nil {
		return nil
	}
	return &pullAnswer{p.Number, p.URL, p.State, p.Draft, p.Title, p.HeadSHA, p.Base, p.Behind, p.UpdatedAt.UTC()}
}

func publicationJSON(p *core.Publication) *publicationAnswer {
	if p == nil {
		return nil
	}
	return &publicationAnswer{
		ID: string(p.ID), Step: string(p.Step), Outcome: string(p.Outcome), Number: p.Number, CommitSHA: p.CommitSHA,
		Failure: failureJSON(p.FailureCode, p.FailureText), LeftOut: p.LeftOut,
		CreatedAt: p.CreatedAt.UTC(), FinishedAt: timeJSON(p.FinishedAt),
	}
}

func publishState(v sessionView) publishAnswer {
	return publishAnswer{v.publishBlocked(), pullJSON(v.PullRequest), publicationJSON(v.Publication)}
}

func eventJSON(e core.Event) eventAnswer {
	return eventAnswer{e.Sequence, string(e.Type), string(e.Producer), string(e.MessageID), e.CreatedAt.UTC(), e.Payload}
}
