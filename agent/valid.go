package agent

import "fmt"

// checkMessages proves that a message list is one that every provider accepts: one leading system
// message, a user message next, every assistant message with content or calls, and every call
// answered by exactly one tool message, in order, before anything else follows. A list that breaks
// this would be refused for good, so it is caught here and not at the provider.
func checkMessages(messages []Message) error {
	if len(messages) < 2 || messages[0].Role != System || messages[1].Role != User {
		return fmt.Errorf("a request begins with a system and a user message")
	}
	var open []ToolCall
	for i, m := range messages {
		if len(open) > 0 {
			if m.Role != ToolRole || m.CallID != open[0].ID {
				return fmt.Errorf("message %d: call %s has no answer", i, open[0].ID)
			}
			open = open[1:]
		} else if m.Role == ToolRole {
			return fmt.Errorf("message %d: answer %s has no call", i, m.CallID)
		}
		switch m.Role {
		case System:
			if i != 0 {
				return fmt.Errorf("message %d: a second system message", i)
			}
		case Assistant:
			if m.Text == "" && len(m.Calls) == 0 {
				return fmt.Errorf("message %d: an assistant message without text and calls", i)
			}
			seen := map[string]bool{}
			for _, c := range m.Calls {
				if c.ID == "" || c.Name == "" || seen[c.ID] {
					return fmt.Errorf("message %d: call id %q is empty or used twice", i, c.ID)
				}
				seen[c.ID] = true
			}
			open = m.Calls
		case User, ToolRole:
			if m.Text == "" {
				return fmt.Errorf("message %d: an empty %s message", i, m.Role)
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("call %s has no answer", open[0].ID)
	}
	return nil
}
