package chat

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"agent-sandboxing/core"
)

// CreateRequest is the new-session form. ShownSHA is the commit that the person saw when they
// pressed the button, "" to take what the branch points to now.
type CreateRequest struct {
	Installation core.InstallationID
	Repository   core.RepositoryID
	Branch       string // "" means the default branch
	ShownSHA     string
	Text         string
	Egress       core.EgressMode // "" means the loosest that the repository may have
	ClientKey    string          // "" makes a fresh one: then a double submit is two sessions
}

// Bounds of what a person may type, in bytes and runes.
const (
	maxKeyBytes   = 128
	maxTitleRunes = 120
	titleRunes    = 80 // of a title made from the first line
)

// Create starts a session with its first message. It asks GitHub for the person's access and for
// the branch's commit now, not from memory. Conflict base_moved when the commit is not the one
// that the form showed; nothing was created then. A repeated ClientKey returns the first session.
func (s *Service) Create(ctx context.Context, user core.User, r CreateRequest) (core.ChatSession, error) {
	text, err := messageText(r.Text)
	if err != nil {
		return core.ChatSession{}, err
	}
	key, err := clientKey(r.ClientKey)
	if err != nil {
		return core.ChatSession{}, err
	}
	// What was created once is found before GitHub is asked: it may have changed since.
	if first, err := s.store.SessionByKey(ctx, user.ID, key); core.KindOf(err) != core.NotFound {
		return first, err
	}
	repo, err := s.pushable(ctx, user.ID, r.Installation, r.Repository)
	if err != nil {
		return core.ChatSession{}, err
	}
	if r.Branch == "" {
		r.Branch = repo.DefaultBranch
	}
	base, err := s.ResolveBranch(ctx, user, repo, r.Branch)
	if err != nil {
		return core.ChatSession{}, err
	}
	if r.ShownSHA != "" && r.ShownSHA != base.SHA {
		return core.ChatSession{}, core.Fail(core.Conflict, "base_moved",
			"The branch "+base.Name+" moved while you were writing (you saw "+shortSHA(r.ShownSHA)+", it is now "+shortSHA(base.SHA)+"). Nothing was started. Look at the current commit and start again.")
	}
	defaultSHA := base.SHA
	if base.Name != repo.DefaultBranch {
		tip, err := s.ResolveBranch(ctx, user, repo, repo.DefaultBranch)
		if err != nil {
			return core.ChatSession{}, err
		}
		defaultSHA = tip.SHA
	}
	policy, err := s.PolicyFor(ctx, repo.ID)
	if err != nil {
		return core.ChatSession{}, err
	}
	egress, err := s.egressFor(ctx, repo.ID, r.Egress)
	if err != nil {
		return core.ChatSession{}, err
	}
	id := core.NewID[core.SessionID]()
	return s.store.CreateSession(ctx, core.NewSession{
		Session: core.ChatSession{
			ID:               id,
			OwnerID:          user.ID,
			Repository:       repo,
			BaseBranch:       base.Name,
			BaseSHA:          base.SHA,
			DefaultBranchSHA: defaultSHA,
			Branch:           core.BranchFor(id),
			Title:            titleOf(text),
			BashPolicy:       policy.Effective,
			EgressMode:       egress,
		},
		Text:      text,
		ClientKey: key,
		MaxActive: s.maxActive,
	})
}

// ListRequest selects a page of the session list. All shows every owner's, to administrators only.
type ListRequest struct {
	All    bool
	Query  string
	State  string
	Before time.Time
}

// PageSize is how many sessions one page of the list holds.
const PageSize = 30

// List returns a page of sessions, newest activity first, and whether there are more.
func (s *Service) List(ctx context.Context, user core.User, r ListRequest) ([]core.SessionRow, bool, error) {
	f := core.SessionFilter{
		Owner: user.ID, Query: strings.TrimSpace(r.Query), State: r.State,
		Archived: r.State == "archived", Before: r.Before, Limit: PageSize + 1,
	}
	if r.All && user.Role == core.Admin {
		f.Owner = ""
	}
	rows, err := s.store.Sessions(ctx, f)
	if err != nil {
		return nil, false, err
	}
	more := len(rows) > PageSize
	return rows[:min(len(rows), PageSize)], more, nil
}

// Rename gives the session another title. Its owner only.
func (s *Service) Rename(ctx context.Context, user core.User, id core.SessionID, title string) error {
	title = strings.Join(strings.Fields(strings.ToValidUTF8(title, "\uFFFD")), " ")
	title = strings.ReplaceAll(title, "\x00", "")
	if title == "" || utf8.RuneCountInString(title) > maxTitleRunes {
		return core.Fail(core.Invalid, "title_invalid", "Give the session a title of 1 to 120 characters.")
	}
	if _, _, err := s.own(ctx, user, id); err != nil {
		return err
	}
	return s.store.RenameSession(ctx, id, title)
}

// Archive puts the session away, or takes it back. Its owner only.
func (s *Service) Archive(ctx context.Context, user core.User, id core.SessionID, archived bool) error {
	if _, _, err := s.own(ctx, user, id); err != nil {
		return err
	}
	return s.store.ArchiveSession(ctx, id, archived)
}

// Stop asks for the session's sandbox to be stopped; it starts again with the next message.
func (s *Service) Stop(ctx context.Context, user core.User, id core.SessionID) error {
	if err := s.mayCancel(ctx, user, id, "sandbox_stop"); err != nil {
		return err
	}
	return s.store.RequestStop(ctx, id)
}

// clientKey checks the key that makes a double submit one thing, or makes one.
func clientKey(key string) (string, error) {
	if key == "" {
		return core.NewID[string](), nil
	}
	if len(key) > maxKeyBytes || !printable(key) {
		return "", core.Fail(core.BadRequest, "idempotency_key_invalid",
			"The idempotency key must be 1 to 128 printable ASCII characters.")
	}
	return key, nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// titleOf is the first line that says something, cut to what a list can show.
func titleOf(text string) string {
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" {
			continue
		}
		runes := []rune(line)
		if len(runes) > titleRunes {
			return strings.TrimRight(string(runes[:titleRunes-1]), " ") + "…"
		}
		return line
	}
	return "Untitled"
}

func shortSHA(sha string) string { return sha[:min(7, len(sha))] }
