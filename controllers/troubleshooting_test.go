package controllers

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/test/cluster"
	"mcpl.dev/operator/test/connector"
)

// situation makes one of the situations of docs/troubleshooting.md in a world: a Channel general of
// the Connector discord that has gone wrong.
type situation func(ctx context.Context, w *world, c *connector.Connector)

// broken are the situations, by the heading under which the page treats them.
var broken = map[string]situation{
	"NoReadyPod": func(ctx context.Context, w *world, _ *connector.Connector) {
		w.declare(ctx, "discord", func(c *v1.Connector) { c.Spec.PodSelector.MatchLabels = map[string]string{"app": "discrod"} })
	},
	"TokenRefused": func(ctx context.Context, w *world, _ *connector.Connector) {
		server, err := connector.Start(context.Background(), connector.Options{Token: "right"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Close)
		w.pod(ctx, "guarded", server)
		w.declare(ctx, "discord", w.token(ctx, "wrong"), func(c *v1.Connector) { c.Spec.PodSelector.MatchLabels = map[string]string{"app": "guarded"} })
	},
	"NotMCPL": func(ctx context.Context, w *world, _ *connector.Connector) {
		w.declare(ctx, "discord", func(c *v1.Connector) { c.Spec.Transport.Path = "/metrics" })
	},
	"RefusedMCPOnly": func(ctx context.Context, w *world, c *connector.Connector) {
		c.Change(func(b *connector.Behavior) { b.Policy.Kind = connector.PolicyMCPOnly })
		w.declare(ctx, "discord")
	},
	"NotPermitted": func(ctx context.Context, w *world, _ *connector.Connector) {
		w.declare(ctx, "discord", func(c *v1.Connector) { c.Spec.Grant = &v1.ConnectorGrant{Deny: []string{"channels.lifecycle"}} })
		w.channel(ctx, "general", "discord", "discord:111:c1")
	},
	"NotRegistered": func(ctx context.Context, w *world, _ *connector.Connector) {
		w.declare(ctx, "discord")
		w.channel(ctx, "general", "discord", "discord:111:c99")
	},
	"OpenFailed": func(ctx context.Context, w *world, c *connector.Connector) {
		w.live(ctx)
		c.Once(connector.On("channels/open", "").Failing(-32603, "relay refused"))
		w.answered(ctx, w.decision(ctx, "open-it", "general", v1.DecisionOpen))
	},
	"CloseFailed": func(ctx context.Context, w *world, c *connector.Connector) {
		w.live(ctx)
		w.answered(ctx, w.decision(ctx, "open-it", "general", v1.DecisionOpen))
		c.Once(connector.On("channels/close", "").Failing(-32603, "platform is away"))
		w.answered(ctx, w.decision(ctx, "close-it", "general", v1.DecisionClose))
	},
	"Substituted": func(ctx context.Context, w *world, c *connector.Connector) {
		w.live(ctx)
		c.Once(connector.On("channels/open", "").Substituting("discord:111:c2"))
		w.answered(ctx, w.decision(ctx, "open-it", "general", v1.DecisionOpen))
	},
	"Held": func(ctx context.Context, w *world, _ *connector.Connector) {
		change(ctx, w.live(ctx), func(c *v1.Channel) { c.Spec.Hold = &v1.Hold{State: v1.StateClosed, Reason: "incident 4711"} })
		w.answered(ctx, w.decision(ctx, "open-it", "general", v1.DecisionOpen))
	},
	"DuplicateChannel": func(ctx context.Context, w *world, _ *connector.Connector) {
		younger(ctx, w.live(ctx), func() *v1.Channel { return w.channel(ctx, "general-again", "discord", "discord:111:c1") })
	},
	"DuplicateServerID": func(ctx context.Context, w *world, _ *connector.Connector) {
		w.live(ctx)
		var first v1.Connector
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "discord"}, &first)).To(Succeed())
		again := younger(ctx, &first, func() *v1.Connector {
			return w.declare(ctx, "discord-again", func(c *v1.Connector) { c.Spec.ServerID = "discord" })
		})
		w.says(ctx, again, v1.ConditionReady, "False/DuplicateServerID")
	},
	"Declined": func(ctx context.Context, w *world, c *connector.Connector) {
		c.Always(connector.On("channels/close", "").Failing(-32603, "platform is away"))
		w.declare(ctx, "discord")
		saying(ctx, w.channel(ctx, "general", "discord", "discord:111:c1"), v1.ConditionSettled, "False/CloseFailed")
		w.answered(ctx, w.decision(ctx, "no-thanks", "general", v1.DecisionDecline, declines))
	},
}

// live has the Channel general settle on the Connector discord.
func (w *world) live(ctx context.Context) *v1.Channel {
	GinkgoHelper()
	w.declare(ctx, "discord")
	general := w.channel(ctx, "general", "discord", "discord:111:c1")
	w.settled(ctx, general, v1.StateClosed)
	return general
}

// page is docs/troubleshooting.md, by heading.
func page() map[string]string {
	text, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "troubleshooting.md"))
	Expect(err).NotTo(HaveOccurred())
	sections := map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		sections[heading] = body
	}
	return sections
}

// example is a command of the page and the lines that it is said to print.
type example struct {
	args  []string
	lines []string
}

func examples(body string) []example {
	var all []example
	for _, line := range strings.Split(body, "\n") {
		line, indented := strings.CutPrefix(line, "    ")
		switch command, is := strings.CutPrefix(line, "$ kubectl "); {
		case !indented:
		case is:
			all = append(all, example{args: strings.Fields(command)})
		case len(all) > 0:
			all[len(all)-1].lines = append(all[len(all)-1].lines, line)
		}
	}
	return all
}

var spaces = regexp.MustCompile(`\s+`)

var _ = Describe("docs/troubleshooting.md", func() {
	It("has a heading for each situation that is made here, and no other", func() {
		headings := page()
		for heading := range broken {
			Expect(headings).To(HaveKey(heading))
		}
		Expect(headings).To(HaveLen(len(broken)))
	})

	for heading, make := range broken {
		It("says what kubectl shows: "+heading, func(ctx SpecContext) {
			w := newWorld(ctx)
			c := w.connector(ctx, "discord", connector.Options{Channels: connector.Generate("discord:111", 2)})
			w.start()
			make(ctx, w, c)
			found := examples(page()[heading])
			Expect(found).NotTo(BeEmpty())
			for _, e := range found {
				Expect(e.lines).NotTo(BeEmpty())
				Eventually(ctx, func(g Gomega) {
					out, err := control.Kubectl(ctx, append([]string{"-n", w.namespace}, e.args...)...)
					g.Expect(err).NotTo(HaveOccurred())
					for _, line := range e.lines {
						g.Expect(spaces.ReplaceAllString(out, " ")).To(ContainSubstring(spaces.ReplaceAllString(line, " ")))
					}
				}).WithPolling(settling / 4).Should(Succeed())
			}
		})
	}
})
