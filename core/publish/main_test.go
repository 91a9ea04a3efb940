package publish_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(doomedVariable) != "" {
		os.Exit(publishDoomed())
	}
	goleak.VerifyTestMain(m)
}
