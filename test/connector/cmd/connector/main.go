// Command connector serves a programmable MCPL connector, for tests and the demo.
// It prints one line of JSON with its addresses when it listens, and ends on
// SIGTERM and SIGINT.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1) // cobra has printed it
	}
}
