package chat

import (
	"context"
	"time"

	"agent-sandboxing/core"
)

// workerAlive is how recent a worker's heartbeat must be for it to count.
const workerAlive = 30 * time.Second

// Platform is what pages say of the processes that run turns.
type Platform struct {
	Workers    int    // seen in the last 30 s
	Model      string // "" when no worker has said it
	ModelLabel string // "scripted demo model" when it is one
	InstallURL string // where the App is installed on another account, "" when unknown
	Problem    string // why no turn can run now, "" for none
	AppProblem string // what keeps the GitHub App from working, "" for none
	MaxSteps   int    // the most that a message may ask for
}

// Platform reads what the workers wrote about themselves, at most 5 s old.
func (s *Service) Platform(ctx context.Context) (Platform, error) {
	workers, ok := s.workers.get("")
	if !ok {
		var err error
		if workers, err = s.store.Workers(ctx); err != nil {
			return Platform{}, err
		}
		s.workers.put("", workers)
	}
	return s.platform(workers), nil
}

func (s *Service) platform(workers []core.Worker) Platform {
	p := Platform{MaxSteps: s.maxSteps}
	for _, w := range workers {
		if w.SilentFor > workerAlive {
			continue
		}
		p.Workers++
		if p.Model == "" {
			p.Model, p.ModelLabel = w.Status.Model, w.Status.ModelLabel
		}
		if p.InstallURL == "" && w.Status.AppSlug != "" {
			p.InstallURL = s.github.InstallURL(w.Status.AppSlug)
		}
		if p.AppProblem == "" {
			p.AppProblem = w.Status.AppProblem
		}
		if p.Problem == "" && w.Status.Docker != "" && w.Status.Docker != "ok" {
			p.Problem = w.Status.Docker
		}
	}
	if p.Workers == 0 {
		p.Problem = "No worker is running. Messages wait until one starts."
	}
	return p
}
