package githubtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// state is everything but the git objects; it is one JSON file that each change rewrites.
type state struct {
	LastID        int64
	App           app
	Accounts      []account
	Repositories  []repository
	Installations []installation
	Tokens        []token
	Pulls         []pull
}

type app struct {
	ID                           int64
	Slug, ClientID, ClientSecret string
	Permissions                  map[string]string // what the App asks for
}

type account struct {
	ID           int64
	Login, Name  string
	Organization bool
	Bot          bool
}

type repository struct {
	ID            int64
	Owner, Name   string
	FormerNames   []string // owner/name before renames
	Description   string
	Language      string
	DefaultBranch string
	Private       bool
	Archived      bool
	Fork          bool
	Access        map[string]Permission // by login; everybody else has public reading at most
	CreatedAt     time.Time
	PushedAt      time.Time
}

func (r repository) fullName() string { return r.Owner + "/" + r.Name }

type installation struct {
	ID           int64
	Account      string
	All          bool
	Repositories []int64
	Suspended    bool
	Permissions  map[string]string
	CreatedAt    time.Time
}

// tokenKind is what a secret was given out as.
type tokenKind string

const (
	kindBrowser      tokenKind = "browser" // the stand-in's own sign-in cookie
	kindCode         tokenKind = "code"
	kindUser         tokenKind = "user"
	kindRefresh      tokenKind = "refresh"
	kindInstallation tokenKind = "installation"
)

// token is a secret that was given out, kept as its hash.
type token struct {
	Hash      string
	Kind      tokenKind
	Login     string // whose it is, of all but installation tokens
	Pair      string // joins a user token with its refresh token
	ExpiresAt time.Time

	RedirectURI, Challenge string // of a code

	Installation int64
	Repositories []int64
	Permissions  map[string]string
}

type pull struct {
	RepositoryID int64
	Number       int
	ID           int64
	Title, Body  string
	Head, Base   string // branch names
	HeadSHA      string // the last one seen
	BaseSHA      string // of the base branch, at the same time
	Author       string // login
	Draft        bool
	Closed       bool
	MergeSHA     string
	CreatedAt    time.Time
	UpdatedAt    time.Time
	ClosedAt     time.Time
}

func (s *Server) statePath() string { return filepath.Join(s.dir, "state.json") }

func (s *Server) load() error {
	data, err := os.ReadFile(s.statePath())
	if errors.Is(err, fs.ErrNotExist) {
		s.state = state{LastID: 1000, App: app{
			ID:           4242,
			Slug:         "agent-sandboxing-demo",
			ClientID:     "Iv23li" + randomText(14),
			ClientSecret: randomText(40),
			Permissions:  map[string]string{"metadata": "read", "contents": "write", "pull_requests": "write"},
		}}
		s.state.Accounts = []account{{ID: s.nextID(), Login: s.state.App.Slug + "[bot]", Bot: true}}
		return s.save()
	}
	if err != nil {
		return fmt.Errorf("read the stand-in's state: %w", err)
	}
	if err := json.Unmarshal(data, &s.state); err != nil {
		return fmt.Errorf("read the stand-in's state: %w", err)
	}
	return nil
}

// update changes the state under the lock and writes it down; when change fails nothing is written.
func (s *Server) update(change func(*state) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := change(&s.state); err != nil {
		return err
	}
	return s.save()
}

// save needs s.mu. The file is replaced whole, so a killed demo leaves the old or the new state.
func (s *Server) save() error {
	data, err := json.MarshalIndent(s.state, "", "\t")
	if err != nil {
		return fmt.Errorf("encode the stand-in's state: %w", err)
	}
	next := s.statePath() + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return fmt.Errorf("write the stand-in's state: %w", err)
	}
	if err := os.Rename(next, s.statePath()); err != nil {
		return fmt.Errorf("write the stand-in's state: %w", err)
	}
	return nil
}

// nextID needs s.mu, or sole ownership of s.
func (s *Server) nextID() int64 {
	s.state.LastID++
	return s.state.LastID
}

// addToken remembers a secret and drops those that ran out long ago. It needs s.mu.
func (s *Server) addToken(secret string, t token) {
	t.Hash = hashOf(secret)
	old := s.now().Add(-time.Hour)
	s.state.Tokens = slices.DeleteFunc(s.state.Tokens, func(t token) bool { return t.ExpiresAt.Before(old) })
	s.state.Tokens = append(s.state.Tokens, t)
}

// liveToken finds a secret of one of the kinds that has not run out.
func (s *Server) liveToken(secret string, kinds ...tokenKind) (token, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hash := hashOf(secret)
	for _, t := range s.state.Tokens {
		if t.Hash == hash && slices.Contains(kinds, t.Kind) && s.now().Before(t.ExpiresAt) {
			return t, true
		}
	}
	return token{}, false
}

func (s *Server) account(login string) (account, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.state.Accounts, func(a account) bool { return strings.EqualFold(a.Login, login) })
	if i < 0 {
		return account{}, false
	}
	return s.state.Accounts[i], true
}

// people are the accounts that can sign in.
func (s *Server) people() []account {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.state.Accounts), func(a account) bool { return a.Organization || a.Bot })
}

// repositoryNamed also finds a repository by a name it had; moved says so.
func (s *Server) repositoryNamed(fullName string) (r repository, moved, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.state.named(fullName); i >= 0 {
		return s.state.Repositories[i].clone(), false, true
	}
	for _, r := range s.state.Repositories {
		if slices.ContainsFunc(r.FormerNames, func(n string) bool { return strings.EqualFold(n, fullName) }) {
			return r.clone(), true, true
		}
	}
	return repository{}, false, false
}

func (s *Server) repositoryByID(id int64) (repository, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.state.Repositories, func(r repository) bool { return r.ID == id })
	if i < 0 {
		return repository{}, false
	}
	return s.state.Repositories[i].clone(), true
}

func (s *Server) installation(id int64) (installation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.state.Installations, func(in installation) bool { return in.ID == id })
	if i < 0 {
		return installation{}, false
	}
	return s.state.Installations[i].clone(), true
}

// installations returns all of them, oldest first.
func (s *Server) installations() []installation {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]installation, 0, len(s.state.Installations))
	for _, in := range s.state.Installations {
		all = append(all, in.clone())
	}
	return all
}

// installed lists the repositories that an installation reaches, by name.
func (s *Server) installed(in installation) []repository {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []repository
	for _, r := range s.state.Repositories {
		if strings.EqualFold(r.Owner, in.Account) && (in.All || slices.Contains(in.Repositories, r.ID)) {
			all = append(all, r.clone())
		}
	}
	slices.SortFunc(all, func(a, b repository) int { return strings.Compare(a.fullName(), b.fullName()) })
	return all
}

func (s *state) named(fullName string) int {
	return slices.IndexFunc(s.Repositories, func(r repository) bool { return strings.EqualFold(r.fullName(), fullName) })
}

func (r repository) clone() repository {
	r.Access = maps.Clone(r.Access)
	r.FormerNames = slices.Clone(r.FormerNames)
	return r
}

func (in installation) clone() installation {
	in.Repositories = slices.Clone(in.Repositories)
	in.Permissions = maps.Clone(in.Permissions)
	return in
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// randomText is n letters and digits.
func randomText(n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	var out []byte
	var b [64]byte
	for len(out) < n {
		_, _ = rand.Read(b[:]) // crypto/rand never fails
		for _, c := range b {
			if len(out) < n && int(c) < 4*len(letters) {
				out = append(out, letters[int(c)%len(letters)])
			}
		}
	}
	return string(out)
}
