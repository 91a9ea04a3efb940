package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"agent-sandboxing/prompts"
)

// Profiles that the agent itself starts. Others may be asked for by name.
const (
	profileMain       = "main"
	profileSubagent   = "subagent"
	profileCompaction = "compaction"
)

// subagentTools is the most that a subagent may have: it looks, it changes nothing, and it cannot
// start another.
func subagentTools() []string { return []string{"find", "grep", "ls", "read"} }

// profile is a system prompt with the tools that go with it.
type profile struct {
	system string
	tools  []string // sorted
	hash   string   // of all that the model is told before the message
}

// profiles checks every declared profile against the prompts and tools that there are.
func profiles(declared map[string]prompts.Profile, known map[string]ToolSpec) (map[string]profile, error) {
	checked := map[string]profile{}
	for name, d := range declared {
		system, err := prompts.System(d.Prompt)
		if err != nil {
			return nil, fmt.Errorf("profile %s: %w", name, err)
		}
		tools := slices.Sorted(slices.Values(d.Tools))
		hash := sha256.New()
		hash.Write([]byte(system))
		for i, tool := range tools {
			spec, ok := known[tool]
			switch {
			case !ok:
				return nil, fmt.Errorf("profile %s: no tool %q", name, tool)
			case i > 0 && tools[i-1] == tool:
				return nil, fmt.Errorf("profile %s: tool %q is listed twice", name, tool)
			case spec.Description == "":
				return nil, fmt.Errorf("profile %s: tool %q has no description in prompts/tools", name, tool)
			}
			hash.Write([]byte("\x00" + spec.Name + "\x00" + spec.Description + "\x00" + string(spec.Parameters)))
		}
		checked[name] = profile{system: system, tools: tools, hash: hex.EncodeToString(hash.Sum(nil))}
	}
	for _, name := range []string{profileMain, profileSubagent, profileCompaction} {
		if _, ok := checked[name]; !ok {
			return nil, fmt.Errorf("there is no profile %s", name)
		}
	}
	for _, tool := range checked[profileSubagent].tools {
		if !slices.Contains(subagentTools(), tool) {
			return nil, fmt.Errorf("profile %s: it may not have %q, only %v", profileSubagent, tool, subagentTools())
		}
	}
	if len(checked[profileCompaction].tools) > 0 {
		return nil, fmt.Errorf("profile %s: it may have no tools", profileCompaction)
	}
	return checked, nil
}
