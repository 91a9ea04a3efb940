package config

import "log/slog"

// Secret is a value that cannot be printed by accident: fmt, slog and json show [secret].
type Secret struct{ value string }

// Reveal is the value itself; call it only where it is used.
func (s Secret) Reveal() string { return s.value }

// Empty says that nothing was set.
func (s Secret) Empty() bool { return s.value == "" }

func (Secret) String() string               { return "[secret]" }
func (Secret) GoString() string             { return "[secret]" }
func (Secret) LogValue() slog.Value         { return slog.StringValue("[secret]") }
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// UnmarshalText lets the environment parser fill a Secret.
func (s *Secret) UnmarshalText(b []byte) error {
	s.value = string(b)
	return nil
}
