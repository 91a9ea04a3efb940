// Package localpg runs a Postgres of our own in the data folder, for an installation that was not
// given a database. The server is a child of this process, reached by a socket that only its owner
// can open, and stops when this process ends, however it ends.
package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

const (
	lockWait    = 10 * time.Second // for a server that is going away, or another start
	recoverWait = 2 * time.Minute  // for the first answer: it may replay its log after a crash
	pollEvery   = 50 * time.Millisecond
	adoptWait   = 2 * time.Second // for one answer of a server that may be adopted
	killWait    = 5 * time.Second // after Stop's context has ended
)

// Server is a running Postgres.
type Server struct {
	socket  string
	process *process // nil when it was adopted: somebody else's to stop
	folder  *folder
}

// Start finds the newest installed Postgres, makes the cluster in dataDir/postgres when there is
// none, and starts it. A server that already runs on that folder is adopted. Unavailable Errors:
// postgres_missing, postgres_version, postgres_locked, postgres_failed, data_dir_unusable.
func Start(ctx context.Context, dataDir string, log *slog.Logger) (*Server, error) {
	f, err := openFolder(dataDir)
	if err != nil {
		return nil, err
	}
	unlock, err := f.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if socket, err := f.waitFree(ctx, lockWait); err != nil {
		return nil, err
	} else if socket != "" {
		log.InfoContext(ctx, "local_postgres_adopted", slog.String("folder", f.data))
		return &Server{socket: socket, folder: f}, nil
	}
	bin, err := f.initialized(ctx, log)
	if err != nil {
		return nil, err
	}
	socket, err := f.freshSocket()
	if err != nil {
		return nil, err
	}
	p, err := spawn(ctx, f, bin, socket, log)
	if err != nil {
		return nil, failed("Postgres could not be started.", err)
	}
	s := &Server{socket: socket, process: p, folder: f}
	if err := s.waitReady(ctx); err != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), killWait)
		defer cancel()
		return nil, errors.Join(err, s.Stop(end))
	}
	log.InfoContext(ctx, "local_postgres_started", slog.String("folder", f.data), slog.Int("pid", p.cmd.Process.Pid))
	return s, nil
}

// URL is the connection string of the server's database.
func (s *Server) URL() string { return connectionString(s.socket) }

// Done is closed when a server that Start started has ended; it is nil for an adopted one.
func (s *Server) Done() <-chan struct{} {
	if s.process == nil {
		return nil
	}
	return s.process.done
}

// Stop ends a server that Start started: clean, its clients disconnected; without mercy once ctx has
// ended. An adopted one stays.
func (s *Server) Stop(ctx context.Context) error {
	if s.process == nil {
		return nil
	}
	err := s.process.stop(ctx)
	s.folder.forgetSocket()
	return err
}

// waitReady waits until the server answers.
func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recoverWait)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if answers(ctx, s.socket, s.folder.data) {
			return nil
		}
		select {
		case <-s.process.done:
			return failed("Postgres ended while it started.", errors.New(s.process.lastLines()))
		case <-ctx.Done():
			return failed("Postgres did not answer in time.", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// answers says that the server behind socket answers and serves the folder data.
func answers(ctx context.Context, socket, data string) bool {
	ctx, cancel := context.WithTimeout(ctx, adoptWait)
	defer cancel()
	conn, err := pgx.Connect(ctx, connectionString(socket))
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close(ctx) }() // only asked a question
	var serves string
	if err := conn.QueryRow(ctx, `SHOW data_directory`).Scan(&serves); err != nil {
		return false
	}
	return sameFolder(serves, data)
}

func sameFolder(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

func connectionString(socket string) string {
	return "host=" + socket + " user=" + superuser + " dbname=postgres sslmode=disable"
}

func failed(what string, cause error) *core.Error {
	return core.Fail(core.Unavailable, "postgres_failed", what+" The log has the reason. Or set DATABASE_URL to a database of your own.").Because(cause)
}

// exists says that path is there; any other trouble with it is the error.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", filepath.Base(path), err)
	}
	return true, nil
}
