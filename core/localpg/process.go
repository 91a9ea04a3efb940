package localpg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// keptLines is how much of the server's log is kept for the report of a failed start.
const keptLines = 20

// process is the server as our child.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and its log was read

	mu    sync.Mutex
	lines []string // the newest of its log
}

// spawn starts the server. The kernel sends it SIGINT (fast shutdown) when the thread that started
// it ends, so that thread waits for it and does nothing else.
func spawn(ctx context.Context, f *folder, bin installed, socket string, log *slog.Logger) (*process, error) {
	ctx = context.WithoutCancel(ctx) // the server outlives its start; stop ends it
	cmd := exec.CommandContext(ctx, filepath.Join(bin.dir, "postgres"), "-D", f.data, "-k", socket,
		"-c", "listen_addresses=",
		"-c", "unix_socket_permissions=0700",
		"-c", "max_connections=200",
		"-c", "timezone=UTC", "-c", "log_timezone=UTC",
		// Its log becomes ours, which holds no statement and no row.
		"-c", "logging_collector=off", "-c", "log_destination=stderr", "-c", "log_line_prefix=",
		"-c", "log_min_error_statement=panic", "-c", "log_error_verbosity=terse", "-c", "log_min_messages=warning")
	f.asOwner(cmd)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGINT
	output, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = write
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine, after the server
		err := cmd.Start()
		_ = write.Close() // the child has its own
		started <- err
		if err != nil {
			_ = output.Close()
			return
		}
		p.relay(ctx, output, log)
		_ = cmd.Wait() // how it ended was said in its log
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// relay passes the server's log on until it has ended.
func (p *process) relay(ctx context.Context, output io.ReadCloser, log *slog.Logger) {
	defer func() { _ = output.Close() }()
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		line := lines.Text()
		level := slog.LevelDebug // what concerns one client is that client's error already
		if strings.HasPrefix(line, "PANIC:") {
			level = slog.LevelError
		}
		log.Log(ctx, level, "local_postgres_says", slog.String("line", line))
		p.keep(line)
	}
	_, _ = io.Copy(io.Discard, output) // a line too long to scan must not block the server
}

func (p *process) keep(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, line)
	p.lines = p.lines[max(0, len(p.lines)-keptLines):]
}

func (p *process) lastLines() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return tail(strings.Join(p.lines, "; "))
}

// stop asks for a fast shutdown; when ctx ends first it forces one, and the next start recovers.
func (p *process) stop(ctx context.Context) error {
	if err := p.signal(syscall.SIGINT); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	if err := p.signal(syscall.SIGQUIT); err != nil {
		return err
	}
	last := time.NewTimer(killWait)
	defer last.Stop()
	select {
	case <-p.done:
		return nil
	case <-last.C:
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

func (p *process) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal Postgres: %w", err)
	}
	return nil
}
