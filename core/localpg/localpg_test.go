package localpg

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

// starterVariable makes the test binary a process that starts the server in a folder, prints its
// address and waits to be killed.
const starterVariable = "LOCALPG_TEST_STARTER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(starterVariable); dir != "" {
		s, err := Start(context.Background(), dir, slog.New(slog.DiscardHandler))
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(s.URL())
		select {}
	}
	os.Exit(m.Run())
}

// newDataDir is a folder that the server's user can enter; t.TempDir's parent would shut it out.
func newDataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "localpg-test-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func start(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // a cleanup runs after t.Context
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

func execute(t *testing.T, url, sql string) {
	t.Helper()
	conn := connect(t, url)
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func ask(t *testing.T, url, sql string) string {
	t.Helper()
	var answer string
	if err := connect(t, url).QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestStart_KeepsDataAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	s := start(t, dir)
	execute(t, s.URL(), `CREATE TABLE kept AS SELECT 'still here' AS word`)
	for setting, want := range map[string]string{"listen_addresses": "", "fsync": "on", "lc_collate": "C.UTF-8", "TimeZone": "UTC"} {
		if got := ask(t, s.URL(), `SHOW `+setting); got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
	if group, err := syscall.Getpgid(s.process.cmd.Process.Pid); err != nil || group == syscall.Getpgrp() {
		t.Errorf("the server's process group is %d (%v), ours: Ctrl-C would stop it before us", group, err)
	}
	socket := s.socket
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("socket folder: %v %v, want only its owner in it", info, err)
	}
	stop(t, s)
	select {
	case <-s.Done():
	default:
		t.Error("Done is open after Stop")
	}
	if there, err := exists(socket); err != nil || there {
		t.Errorf("socket folder after Stop: there = %v, %v", there, err)
	}
	again := start(t, dir)
	if got := ask(t, again.URL(), `SELECT word FROM kept`); got != "still here" {
		t.Errorf("after a restart the table holds %q", got)
	}
	if again.socket == socket {
		t.Error("the socket's folder was used again")
	}
}

// startElsewhere starts the server in a process of its own, which kill ends with SIGKILL.
func startElsewhere(t *testing.T, dir string) (url string, kill func()) {
	t.Helper()
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), starterVariable+"="+dir)
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || strings.HasPrefix(line, "error:") {
		t.Fatalf("the starter said %q, %v", line, err)
	}
	return strings.TrimSpace(line), func() {
		if err := parent.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = parent.Wait() // says that it was killed
	}
}

func TestStart_ServerEndsWithAKilledParentAndKeepsCommits(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	url, kill := startElsewhere(t, dir)
	execute(t, url, `CREATE TABLE kept AS SELECT 'committed' AS word`)
	kill()
	f := open(t, dir)
	gone, err := wait(t.Context(), 20*time.Second, func() (bool, error) {
		pid, err := f.holder()
		return pid == 0, err
	})
	if err != nil || !gone {
		t.Fatalf("the server outlived its killed parent: %v", err)
	}
	s := start(t, dir)
	if got := ask(t, s.URL(), `SELECT word FROM kept`); got != "committed" {
		t.Errorf("after the kill the table holds %q", got)
	}
}

func TestStart_RightAfterAKillWaitsForTheOldServer(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	_, kill := startElsewhere(t, dir)
	kill() // the server may still answer
	s := start(t, dir)
	if s.process == nil {
		t.Fatal("adopted a server that is about to stop")
	}
	if got := ask(t, s.URL(), `SELECT 'ready'`); got != "ready" {
		t.Errorf("answered %q", got)
	}
}

func TestStart_AdoptsARunningServer(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	servers := make(chan *Server, 2)
	for range 2 { // at the same moment: one starts, the other adopts
		go func() {
			s, err := Start(t.Context(), dir, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Errorf("Start: %v", err)
			}
			servers <- s
		}()
	}
	a, b := <-servers, <-servers
	if a == nil || b == nil {
		t.FailNow()
	}
	owner, guest := a, b
	if owner.process == nil {
		owner, guest = b, a
	}
	t.Cleanup(func() { stop(t, owner) })
	if owner.process == nil || guest.process != nil || owner.URL() != guest.URL() {
		t.Fatalf("owner %+v, guest %+v: want one server and one address", owner, guest)
	}
	stop(t, guest)
	if got := ask(t, owner.URL(), `SELECT 'alive'`); got != "alive" {
		t.Errorf("after the guest's Stop the server answers %q", got)
	}
}

func TestStart_TakesOverWhatACrashLeft(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	if err := os.MkdirAll(filepath.Join(dir, "postgres.new", "base"), 0o700); err != nil { // a killed initdb
		t.Fatal(err)
	}
	s := start(t, dir)
	stop(t, s)
	// A number that lives and is no Postgres: after a reboot, pids are small and soon used again.
	stale := fmt.Sprintf("%d\n%s\n1700000000\n5432\n/tmp\n\n", os.Getpid(), filepath.Join(dir, "postgres"))
	if err := os.WriteFile(filepath.Join(dir, "postgres", "postmaster.pid"), []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, start(t, dir).URL(), `SELECT 'up'`); got != "up" {
		t.Errorf("answered %q", got)
	}
}

func TestWaitFree_RefusesAFolderThatAnotherServerHolds(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	s := start(t, dir)
	f := open(t, dir)
	if err := os.WriteFile(f.socketRecord(), fmt.Appendf(nil, "%s\n%d\n", s.socket, 1), 0o600); err != nil { // as if somebody else had started it
		t.Fatal(err)
	}
	socket, err := f.waitFree(t.Context(), 100*time.Millisecond)
	if core.CodeOf(err) != "postgres_locked" || socket != "" {
		t.Errorf("waitFree = %q, %v, want postgres_locked", socket, err)
	}
}

func TestNewest(t *testing.T) {
	t.Parallel()
	_, err := newest(t.Context(), []string{t.TempDir()}, 0)
	if core.CodeOf(err) != "postgres_missing" || !strings.Contains(core.MessageOf(err), "apt-get install") {
		t.Errorf("without Postgres: %v, want postgres_missing with the command", err)
	}
	_, err = newest(t.Context(), places(), 3)
	if core.CodeOf(err) != "postgres_version" || !strings.Contains(core.MessageOf(err), "postgresql-3") {
		t.Errorf("with a cluster of another version: %v, want postgres_version with the package", err)
	}
	old, young := filepath.Join("testdata", "postgres-9"), filepath.Join("testdata", "postgres-17")
	got, err := newest(t.Context(), []string{young, old}, 0)
	if err != nil || got.dir != young || got.major != 17 {
		t.Errorf("newest = %+v, %v, want 17", got, err)
	}
	if got, err = newest(t.Context(), []string{young, old}, 9); err != nil || got.dir != old {
		t.Errorf("newest for 9 = %+v, %v", got, err)
	}
}

func TestLetOwnerIn_NamesTheFolderThatShutsTheServerOut(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(t.TempDir(), "closed")
	data := filepath.Join(closed, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	f := &folder{root: data, owner: &syscall.Credential{Uid: 65533, Gid: 65533}}
	err := f.letOwnerIn()
	if core.CodeOf(err) != "data_dir_unusable" || !strings.Contains(core.MessageOf(err), closed+".") {
		t.Errorf("letOwnerIn: %v, want data_dir_unusable naming %s", err, closed)
	}
	info, err := os.Stat(data)
	if err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("the data folder itself: %v %v, want 0711: to pass, not to list", info.Mode(), err)
	}
}

func open(t *testing.T, dir string) *folder {
	t.Helper()
	f, err := openFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
