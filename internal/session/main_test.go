package session

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// net/http reads these once per process. No dial may take notice of them.
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
		_ = os.Setenv(name, "http://127.0.0.1:1")
	}
	goleak.VerifyTestMain(m)
}
