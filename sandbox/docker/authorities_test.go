package docker_test

import (
	"strings"
	"testing"

	"agent-sandboxing/sandbox/docker/dockertest"
)

// A company's own authority is what programs find, at a place that no program can change.
func TestAuthorities_AreWhatProgramsTrust(t *testing.T) {
	t.Parallel()
	var volume string
	t.Cleanup(func() { dockertest.Docker(t, "volume", "rm", volume) }) // runs last, after the containers
	config := dockertest.Config(t)
	config.Authorities = []byte("-----BEGIN CERTIFICATE-----\nof " + config.Instance + "\n-----END CERTIFICATE-----\n")
	b := start(t, dockertest.Open(t, config), spec())
	volume = inspect(t, b.ref, `{{range .Mounts}}{{if eq .Destination "/opt/toolbox"}}{{.Name}}{{end}}{{end}}`)
	for _, name := range []string{"SSL_CERT_FILE", "GIT_SSL_CAINFO", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "CARGO_HTTP_CAINFO"} {
		if exit, out := b.sh(t, `cat "$`+name+`"`); exit != 0 || out != strings.TrimSpace(string(config.Authorities)) {
			t.Errorf("%s: exit %d, %s", name, exit, out)
		}
	}
	if exit, out := b.sh(t, `python3 -c 'import ssl; print(ssl.get_default_verify_paths().cafile)'`); exit != 0 || !strings.HasPrefix(out, "/opt/toolbox/") {
		t.Errorf("Python trusts %s", out)
	}
	if exit, _ := b.sh(t, `: > "$SSL_CERT_FILE" || rm "$SSL_CERT_FILE"`); exit == 0 {
		t.Error("a program changed what the others trust")
	}
	if _, out := start(t, dockertest.New(t), spec()).sh(t, "env"); strings.Contains(out, "SSL_CERT_FILE") {
		t.Errorf("without a bundle the image's own is not used: %s", out)
	}
}
