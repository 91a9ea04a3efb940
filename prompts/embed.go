// Package prompts holds what models are told: versioned system prompts, the descriptions of tools,
// and the profiles that say which tools go with which prompt. A changed text is a new version.
package prompts

import (
	"embed"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

//go:embed session-agent/*.md subagent/*.md compaction/*.md tools/*.md profiles.yaml
var files embed.FS

// Profile says which system prompt and which tools an invocation gets.
type Profile struct {
	Prompt string   `yaml:"prompt"`
	Tools  []string `yaml:"tools"`
}

// Profiles reads profiles.yaml; an unknown key is an error.
func Profiles() (map[string]Profile, error) {
	data, err := files.ReadFile("profiles.yaml")
	if err != nil {
		return nil, err
	}
	var profiles map[string]Profile
	if err := yaml.UnmarshalWithOptions(data, &profiles, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("read profiles.yaml: %w", err)
	}
	return profiles, nil
}

// System returns a system prompt by its id, as session-agent/v1.
func System(id string) (string, error) {
	return text(id + ".md")
}

// Tool returns the description of a tool, "" when there is none.
func Tool(name string) string {
	s, err := text("tools/" + name + ".md")
	if err != nil {
		return ""
	}
	return s
}

func text(name string) (string, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("no prompt %s: %w", name, err)
	}
	return strings.TrimSpace(string(data)), nil
}
