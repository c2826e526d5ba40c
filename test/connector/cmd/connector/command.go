package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpl.dev/operator/test/connector"
)

// flags are the command line.
type flags struct {
	options   connector.Options
	dialect   string
	tokenFile string
	channels  string
	generate  int
	prefix    string
}

func newCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "connector",
		Short: "Serve a programmable MCPL connector",
		Long: `Serve a programmable MCPL connector over a WebSocket at ` + connector.Path + `.

It prints one line of JSON with its addresses when it listens. What it says, how
it answers and how it fails is told it over the control API: POST /<operation>
with the arguments as a JSON object; GET / lists the operations.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	o := &f.options
	fs := cmd.Flags()
	fs.StringVar(&o.Listen, "listen", "127.0.0.1:0", "where MCPL is served, host:port")
	fs.StringVar(&o.Control, "control", "", "where the control API is served, host:port; without authentication, so keep it on loopback")
	fs.StringVar(&o.Token, "token", "", "token asked of hosts; processes can see it, so prefer --token-file")
	fs.StringVar(&f.tokenFile, "token-file", "", "file with the token asked of hosts")
	fs.StringVar(&o.CertFile, "tls-cert", "", "PEM file with the certificate chain; makes it wss")
	fs.StringVar(&o.KeyFile, "tls-key", "", "PEM file with the certificate's key")
	fs.StringVar(&f.dialect, "dialect", string(connector.Dialect05), "MCPL dialect: 0.4 or 0.5")
	fs.StringVar(&f.channels, "channels", "", "YAML or JSON file with a list of channel descriptors; an id alone will do")
	fs.IntVar(&f.generate, "generate", 0, "number of channels to make up, after those of --channels")
	fs.StringVar(&f.prefix, "prefix", "demo", "type and id prefix of the channels made up")
	fs.BoolVar(&o.Fence, "fence", false, "ask hosts for Mcpl-Term and Mcpl-Host, and let a higher term take over")
	fs.BoolVar(&o.ReplaceConnection, "replace", false, "without --fence, let a second connection take over; default: it is never answered")
	fs.StringVar(&o.ServerName, "server-name", "demo", "name of the connector and its feature sets")
	fs.BoolVar(&o.Behavior.ServeManifest, "serve-manifest", false, "answer mcpl/manifest")
	fs.DurationVar((*time.Duration)(&o.Behavior.Delay), "delay", 0, "how long each request takes, but for the handshake's")
	fs.IntVar(&o.JournalKeep, "journal", 100_000, "journal entries to keep; negative: counts only")
	cmd.MarkFlagsMutuallyExclusive("token", "token-file")
	cmd.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	return cmd
}

// run serves until the command's context ends.
func (f *flags) run(cmd *cobra.Command) error {
	if err := f.complete(); err != nil {
		return err
	}
	ctx := cmd.Context()
	c, err := connector.Start(ctx, f.options)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(cmd.OutOrStdout()).Encode(c.Ready()); err != nil {
		return errors.Join(err, c.Close())
	}
	<-ctx.Done()
	return c.Close()
}

// complete reads the files that flags name.
func (f *flags) complete() error {
	o := &f.options
	o.Dialect = connector.Dialect(f.dialect)
	if o.Dialect != connector.Dialect04 && o.Dialect != connector.Dialect05 {
		return fmt.Errorf("--dialect is 0.4 or 0.5, not %q", f.dialect)
	}
	if f.tokenFile != "" {
		token, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return fmt.Errorf("read --token-file: %w", err)
		}
		if o.Token = strings.TrimSpace(string(token)); o.Token == "" {
			return fmt.Errorf("--token-file %s is empty: put the token in it", f.tokenFile)
		}
	}
	if f.channels != "" {
		text, err := os.ReadFile(f.channels)
		if err != nil {
			return fmt.Errorf("read --channels: %w", err)
		}
		if o.Channels, err = readChannels(text); err != nil {
			return fmt.Errorf("read --channels %s: %w", f.channels, err)
		}
	}
	o.Channels = append(o.Channels, connector.Generate(f.prefix, f.generate)...)
	return nil
}
