package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func valid() map[string]string {
	return map[string]string{
		"HOME": "/home/someone", "GITHUB_CLIENT_ID": "id", "GITHUB_CLIENT_SECRET": "canary-secret",
		"GITHUB_APP_ID": "7", "GITHUB_APP_PRIVATE_KEY_FILE": "testdata/key.pem", "OPENROUTER_API_KEY": "canary-model", "ALLOWED_LOGINS": "octo-dev",
	}
}

func TestParse_ReportsEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Parse(Serve, map[string]string{
		"HOME": "/home/someone", "PUBLIC_URL": "http://box.example.org", "LISTEN_ADDR": "nonsense",
		"BASH_POLICY": "anything", "CLONE_DEPTH": "many", "SANDBOX_MAX_RUNNING": "few",
	})
	if err == nil {
		t.Fatal("a broken environment was accepted")
	}
	for _, want := range []string{
		"PUBLIC_URL", "LISTEN_ADDR", "BASH_POLICY", "CLONE_DEPTH", "SANDBOX_MAX_RUNNING", "GITHUB_CLIENT_ID", "GITHUB_CLIENT_SECRET",
		"GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY_FILE", "OPENROUTER_API_KEY", "ALLOWED_LOGINS",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the report does not name %s:\n%v", want, err)
		}
	}
}

func TestParse_AcceptsTheSmallestServe(t *testing.T) {
	t.Parallel()
	c, err := Parse(Serve, valid())
	if err != nil {
		t.Fatal(err)
	}
	if c.PublicURL != "http://127.0.0.1:8080" || c.BashPolicy != "seed" || c.CloneDepth != 50 {
		t.Errorf("defaults: %+v", c)
	}
}

// A value that cannot be read has no size to complain of.
func TestParse_SaysOneThingOfAVariable(t *testing.T) {
	t.Parallel()
	for variable, test := range map[string]struct{ value, want string }{
		"SANDBOX_MEMORY":      {"2g", "SANDBOX_MEMORY is not a whole number without a unit"},
		"SANDBOX_CPUS":        {"two", "SANDBOX_CPUS is not a number without a unit"},
		"SANDBOX_PIDS":        {"31", "SANDBOX_PIDS must be at least 32"},
		"GITHUB_APP_ID":       {"my-app", "GITHUB_APP_ID is not a whole number without a unit"},
		"ALLOW_INSECURE_HTTP": {"maybe", "ALLOW_INSECURE_HTTP is not true or false"},
		"SANDBOX_MAX_RUNNING": {"0", "SANDBOX_MAX_RUNNING must be at least 1"},
		"SANDBOX_WARM":        {"-1", "SANDBOX_WARM must be 0 (none) or a number of sandboxes"},
		"SANDBOX_DISK":        {"63", "SANDBOX_DISK must be 0 (no bound) or at least 64; it is in MiB"},
		"SANDBOX_INODES":      {"999", "SANDBOX_INODES must be 0 (no bound) or at least 1000"},
		"SANDBOX_MAX_AGE":     {"0", "SANDBOX_MAX_AGE must be at least 1; it is in hours"},
	} {
		vars := valid()
		vars[variable] = test.value
		if _, err := Parse(Serve, vars); err == nil || err.Error() != test.want {
			t.Errorf("%s=%s: %v", variable, test.value, err)
		}
	}
}

// Sandboxes that run ahead count in SANDBOX_MAX_RUNNING: a session would have no place beside them.
func TestParse_TheWarmOnesLeaveASessionAPlace(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		warm, running string
		want          int // -1 is a problem
	}{
		{"", "8", 2},
		{"", "2", 1},
		{"", "1", 0},
		{"0", "1", 0},
		{"7", "8", 7},
		{"8", "8", -1},
		{"1", "1", -1},
	} {
		vars := valid()
		vars["SANDBOX_WARM"], vars["SANDBOX_MAX_RUNNING"] = test.warm, test.running
		c, err := Parse(Serve, vars)
		switch {
		case test.want < 0 && (err == nil || !strings.HasPrefix(err.Error(), "SANDBOX_WARM is "+test.warm+" and must be below SANDBOX_MAX_RUNNING")):
			t.Errorf("%+v: %v", test, err)
		case test.want >= 0 && (err != nil || c.Sandbox.Warm != test.want):
			t.Errorf("%+v: %d, %v", test, c.Sandbox.Warm, err)
		}
	}
}

func TestParse_SomebodyMustBeAbleToSignIn(t *testing.T) {
	t.Parallel()
	for role, want := range map[Role]bool{Serve: true, Web: true, Worker: false} {
		vars := valid()
		vars["DATABASE_URL"], vars["ENCRYPTION_KEYS"], vars["ALLOWED_LOGINS"] = "postgres://x", "a:AAAA", " , "
		_, err := Parse(role, vars)
		if got := err != nil && strings.Contains(err.Error(), "nobody could sign in"); got != want {
			t.Errorf("%s: %v", role, err)
		}
		for _, one := range []string{"ALLOWED_LOGINS", "ALLOWED_ORGS", "ADMIN_LOGINS"} {
			open := maps.Clone(vars)
			open[one] = "somebody"
			if _, err := Parse(role, open); err != nil {
				t.Errorf("%s with %s: %v", role, one, err)
			}
		}
	}
}

func TestParse_TheAppsKeyMustBeAReadablePEMFile(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/nope/key.pem":  "GITHUB_APP_PRIVATE_KEY_FILE cannot be read",
		"testdata":       "GITHUB_APP_PRIVATE_KEY_FILE cannot be read",
		"config_test.go": "GITHUB_APP_PRIVATE_KEY_FILE is no PEM file",
	} {
		vars := valid()
		vars["DATABASE_URL"], vars["ENCRYPTION_KEYS"], vars["GITHUB_APP_PRIVATE_KEY_FILE"] = "postgres://x", "a:AAAA", path
		for _, role := range []Role{Serve, Worker} {
			if _, err := Parse(role, vars); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s with %s: %v", role, path, err)
			}
		}
		if _, err := Parse(Web, vars); err != nil {
			t.Errorf("web, which needs no key, with %s: %v", path, err)
		}
	}
}

func TestParse_WebHoldsNeitherModelKeyNorAppKey(t *testing.T) {
	t.Parallel()
	vars := valid()
	vars["DATABASE_URL"], vars["ENCRYPTION_KEYS"] = "postgres://x", "a:AAAA"
	c, err := Parse(Web, vars)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Model.OpenRouterAPIKey.Empty() || c.GitHub.AppPrivateKeyFile != "" {
		t.Error("the web process kept a secret that only workers need")
	}
}

func TestParse_WebChecksWhatItFreezesOnSessions(t *testing.T) {
	t.Parallel()
	vars := valid()
	vars["DATABASE_URL"], vars["ENCRYPTION_KEYS"] = "postgres://x", "a:AAAA"
	vars["BASH_POLICY"], vars["ENABLE_FIXTURES"], vars["FIXTURES_DIR"] = "anything", "true", "relative"
	_, err := Parse(Web, vars)
	if err == nil || !strings.Contains(err.Error(), "BASH_POLICY") || !strings.Contains(err.Error(), "FIXTURES_DIR") {
		t.Errorf("web: %v", err)
	}
}

func TestConfig_SecretsAreAllThatItHolds(t *testing.T) {
	t.Parallel()
	vars := valid()
	vars["DATABASE_URL"], vars["ENCRYPTION_KEYS"] = "postgres://app:canary-password@db/app", "new:canary-key-1,old:canary-key-2"
	c, err := Parse(Serve, vars)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"canary-secret", "canary-model", "postgres://app:canary-password@db/app", "canary-key-1", "canary-key-2"} {
		if !slices.Contains(c.Secrets(), want) {
			t.Errorf("Secrets lacks %s", want)
		}
	}
}

func TestParse_WebAndWorkerNeedTheSharedDatabaseAndKeys(t *testing.T) {
	t.Parallel()
	for _, role := range []Role{Web, Worker} {
		vars := valid()
		vars["BASH_POLICY"] = "sed"
		_, err := Parse(role, vars)
		if err == nil || !strings.Contains(err.Error(), "BASH_POLICY") {
			t.Errorf("%s took a policy that does not exist: %v", role, err)
		}
		if err == nil || !strings.Contains(err.Error(), "DATABASE_URL") || !strings.Contains(err.Error(), "ENCRYPTION_KEYS") {
			t.Errorf("%s: %v", role, err)
		}
	}
}

func TestConfig_NeverPrintsASecret(t *testing.T) {
	t.Parallel()
	c, err := Parse(Serve, valid())
	if err != nil {
		t.Fatal(err)
	}
	j, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprintf("%v", c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), string(j)} {
		if strings.Contains(s, "canary") {
			t.Errorf("a secret was printed: %s", s)
		}
	}
}

func TestParse_ModelSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]string{
		"MODEL_DIALECT": "anthropic", "MODEL_REASONING_REPLAY": "yes", "MODEL_SCHEMA": "small", "MODEL_MAX_OUTPUT": "-1", "MODEL_RETRIES": "6",
	} {
		for _, role := range []Role{Serve, Probe} {
			vars := valid()
			vars[name] = wrong
			if _, err := Parse(role, vars); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s took %s=%s: %v", role, name, wrong, err)
			}
		}
	}
}

func TestParse_ProbeNeedsTheModelAlone(t *testing.T) {
	t.Parallel()
	c, err := Parse(Probe, map[string]string{"HOME": "/home/x", "OPENROUTER_API_KEY": "k", "MODEL_PROVIDERS": "one,two"})
	if err != nil || !slices.Equal(c.Model.ModelProviders, []string{"one", "two"}) || c.Model.ModelRetries != 2 {
		t.Errorf("%+v, %v", c.Model, err)
	}
	if _, err := Parse(Probe, map[string]string{"HOME": "/home/x"}); err == nil || !strings.Contains(err.Error(), "OPENROUTER_API_KEY") {
		t.Errorf("got %v", err)
	}
}
