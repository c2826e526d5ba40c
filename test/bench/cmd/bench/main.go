// Command bench measures what the operator costs, and prints it beside the goals.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"mcpl.dev/operator/test/bench"
)

func main() {
	plan := bench.Plan{Progress: os.Stderr}
	cmd := &cobra.Command{
		Use:           "bench",
		Short:         "Measures writes, reconciliations, times and memory of the operator against its goals.",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			log.SetLogger(zap.New(zap.WriteTo(io.Discard)))
			var table bench.Table
			err := plan.Run(ctx, &table)
			return errors.Join(err, table.Write(os.Stdout))
		},
	}
	set := cmd.Flags()
	set.IntVar(&plan.Size.Connectors, "connectors", 20, "how many connectors")
	set.IntVar(&plan.Size.ChannelsEach, "channels", 100, "how many channels each of them has")
	set.IntVar(&plan.Rounds, "rounds", 10, "in how many turns the channels are made Ready, each beside the same number by plain clients")
	set.IntVar(&plan.Decisions, "decisions", 500, "how many decisions are made in a row, and again in parallel")
	set.DurationVar(&plan.Rest, "rest", 30*time.Second, "how long the operator is watched at rest")
	if err := cmd.Execute(); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
