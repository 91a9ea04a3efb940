// Command agent-sandboxing is a self-hosted cloud coding agent: pages, API and streams for people
// (web), the agent, git and sandboxes (worker), or both in one process (serve).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"agent-sandboxing/core/config"
)

// version is set by the build.
var version = "unknown"

type cli struct {
	Serve   serveCmd   `cmd:"" help:"Run everything in one process: pages, agent, sandboxes, and a database of its own unless DATABASE_URL is set."`
	Web     webCmd     `cmd:"" help:"Run the pages, the API and the streams."`
	Worker  workerCmd  `cmd:"" help:"Run the agent, git and the sandboxes."`
	Migrate migrateCmd `cmd:"" help:"Bring the database at DATABASE_URL to this version's schema."`
	Doctor  doctorCmd  `cmd:"" help:"Check every dependency, the Docker host and every control of a live sandbox, and say what to do about each."`
	Model   modelCmd   `cmd:"" help:"Look at the model."`
	Version versionCmd `cmd:"" help:"Print the version."`

	VersionFlag kong.VersionFlag `name:"version" help:"Print the version and end."`
}

type (
	serveCmd   struct{}
	webCmd     struct{}
	workerCmd  struct{}
	migrateCmd struct{}
	doctorCmd  struct {
		Strict bool `help:"Fail also on what is only degraded."`
		JSON   bool `help:"Print one JSON array of name, state, detail and remedy." name:"json"`
	}
	versionCmd struct{}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	k := kong.Parse(&c, kong.Name("agent-sandboxing"), kong.UsageOnError(),
		kong.Description("A self-hosted cloud coding agent. Configuration comes from the environment; OPERATIONS.md lists every variable."),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Vars{"version": version})
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "agent-sandboxing:", err)
		stop()
		os.Exit(1)
	}
}

func (serveCmd) Run(ctx context.Context) error  { return run(ctx, config.Serve) }
func (webCmd) Run(ctx context.Context) error    { return run(ctx, config.Web) }
func (workerCmd) Run(ctx context.Context) error { return run(ctx, config.Worker) }

func (versionCmd) Run() error {
	_, err := fmt.Fprintln(os.Stdout, version)
	return err
}
