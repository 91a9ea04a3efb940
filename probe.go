package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"agent-sandboxing/agent/openai"
	"agent-sandboxing/agent/probe"
	"agent-sandboxing/core/config"
)

type modelCmd struct {
	Probe modelProbeCmd `cmd:"" help:"Ask the configured model ten things and say in words what will not work. Costs about as much as one turn."`
}

type modelProbeCmd struct {
	ContextTokens int `default:"60000" help:"About how long the long prompt is."`
}

func (c modelProbeCmd) Run(ctx context.Context) error {
	cfg, err := config.Load(config.Probe)
	if err != nil {
		return fmt.Errorf("the configuration has problems:\n%w", err)
	}
	if c.ContextTokens < 1 {
		return errors.New("--context-tokens must be positive")
	}
	return probeModel(ctx, os.Stdout, modelOptions(cfg.Model), c.ContextTokens)
}

// probeModel prints each finding when it is made. What keeps the agent from working is an error.
func probeModel(ctx context.Context, w io.Writer, o openai.Options, contextTokens int) error {
	model := openai.New(o)
	defer model.Close()
	var failed error
	report := probe.Run(ctx, model, probe.Options{ContextTokens: contextTokens, Heard: func(f probe.Finding) {
		_, err := fmt.Fprintf(w, "%-9s %-14s %s\n", f.State, f.Name, f.Words)
		failed = errors.Join(failed, err)
	}})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case failed != nil:
		return failed
	case report.Worst() == probe.Broken:
		return errors.New(report.Verdict())
	}
	_, err := fmt.Fprintln(w, report.Verdict())
	return err
}

// modelOptions are the model's wire as configured.
func modelOptions(m config.Model) openai.Options {
	return openai.Options{
		BaseURL: m.ModelBaseURL, Key: m.OpenRouterAPIKey.Reveal(), Model: m.AgentModel,
		Dialect: openai.Dialect(m.ModelDialect), Replay: openai.Replay(m.ModelReasoningReplay), Schema: openai.Schema(m.ModelSchema),
		Effort: m.ModelReasoningEffort, MaxOutput: m.ModelMaxOutput, OneCall: m.ModelOneCall,
		Providers: m.ModelProviders, AllowRetention: m.ModelAllowRetention, Retries: &m.ModelRetries,
	}
}
