package store

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

// defaultPage is how many sessions a list shows when the filter does not say.
const defaultPage = 50

// listSessions joins each session with its newest question, sandbox, diff and pull request, and
// counts what waits. $1 owner, $2 archived, $3 pattern, $4 state, $5 before, $6 limit.
const listSessions = `
	SELECT ` + sessionColumns + `, u.login,
		coalesce(last.state, ''), coalesce(last.id::text, ''), last.started_at,
		(SELECT count(*) FROM messages WHERE session_id = s.id AND state = 'queued'),
		coalesce(box.state, ''), coalesce(diff.changed_files, 0), coalesce(diff.additions, 0), coalesce(diff.deletions, 0),
		coalesce(p.number, 0), coalesce(p.url, ''), coalesce(p.state, ''), coalesce(p.draft, false), coalesce(p.head_sha, ''), coalesce(p.title, ''), p.updated_at
	` + fromSessions + `
	JOIN users u ON u.id = s.owner_id
	LEFT JOIN pull_requests p ON p.session_id = s.id
	LEFT JOIN LATERAL (
		SELECT id, state, started_at FROM messages WHERE session_id = s.id AND role = 'user'
		ORDER BY state = 'working' DESC, state = 'queued' DESC,
			CASE WHEN state = 'queued' THEN created_at END, created_at DESC LIMIT 1
	) last ON true
	LEFT JOIN LATERAL (
		SELECT state FROM sandboxes WHERE session_id = s.id ORDER BY generation DESC, created_at DESC LIMIT 1
	) box ON true
	LEFT JOIN LATERAL (
		SELECT changed_files, additions, deletions FROM artifacts
		WHERE session_id = s.id AND kind = 'diff' ORDER BY created_at DESC LIMIT 1
	) diff ON true
	WHERE ($1 = '' OR s.owner_id = nullif($1, '')::uuid)
	AND s.archived = $2
	AND ($3 = '' OR s.title ILIKE $3 OR s.branch ILIKE $3 OR s.base_branch ILIKE $3 OR r.owner || '/' || r.name ILIKE $3)
	AND CASE $4
		WHEN 'active' THEN last.state IN ('queued', 'working')
		WHEN 'failed' THEN last.state = 'failed'
		WHEN 'review' THEN last.state NOT IN ('queued', 'working') AND diff.changed_files > 0 AND p.number IS NULL
		ELSE true END
	AND s.updated_at < coalesce($5::timestamptz, 'infinity')
	ORDER BY s.updated_at DESC LIMIT $6`

// Sessions returns a page of the list, newest activity first. State "active" has a queued or working
// message, "failed" ended its last one so, "review" has changes and no pull request, "archived" is
// the same as Archived. A row's last message is the working one, else the next queued one, else the
// newest.
func (s *Store) Sessions(ctx context.Context, f core.SessionFilter) ([]core.SessionRow, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultPage
	}
	rows, err := s.pool.Query(ctx, listSessions,
		string(f.Owner), f.Archived || f.State == "archived", containing(f.Query), f.State, orNull(f.Before), limit)
	if err != nil {
		return nil, mapError(err)
	}
	list, err := pgx.CollectRows(rows, scanSessionRow)
	return list, mapError(err)
}

func scanSessionRow(row pgx.CollectableRow) (core.SessionRow, error) {
	var r core.SessionRow
	var p core.PullRequest
	err := row.Scan(append(sessionFields(&r.Session), &r.OwnerLogin,
		&r.LastState, &r.LastMessage, zeroTime{&r.StartedAt}, &r.QueuedCount,
		&r.Sandbox, &r.Files, &r.Additions, &r.Deletions,
		&p.Number, &p.URL, &p.State, &p.Draft, &p.HeadSHA, &p.Title, zeroTime{&p.UpdatedAt})...)
	if p.Number != 0 {
		p.SessionID = r.Session.ID
		r.PullRequest = &p
	}
	return r, err
}

// containing is an ILIKE pattern for text that contains query literally, "" for no query.
func containing(query string) string {
	query = strings.TrimSpace(clean(query))
	if query == "" {
		return ""
	}
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(query) + "%"
}
