package web_test

import (
	"testing"

	"go.uber.org/goleak"
)

// The highlighter's regular expressions keep a clock that ends by itself some time after its last use.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}
