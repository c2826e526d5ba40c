package controllers

import (
	"bufio"
	"context"
	"net"

	"github.com/coder/websocket"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/test/connector"
)

// lifecycle has a connector advertise that its channels can be opened and closed, or not.
func lifecycle(ctx context.Context, c *connector.Connector, has bool) {
	GinkgoHelper()
	m := connector.DefaultManifest(connector.Dialect05, "discord")
	leaves := []string{"register", "publish", "incoming", "acknowledge"}
	if has {
		leaves = append(leaves, "lifecycle")
	}
	m["channels"] = connector.Leaves(leaves...)
	c.SetManifest(m)
	if c.Status().Connected {
		Expect(c.ManifestChanged(ctx)).To(Succeed())
	}
}

var _ = Describe("A grant that moves", func() {
	var (
		w *world
		c *connector.Connector
	)
	BeforeEach(func(ctx SpecContext) {
		w = newWorld(ctx)
		c = w.connector(ctx, "discord", connector.Options{
			Channels: connector.Generate("discord:111", 4), Behavior: connector.Behavior{ServeManifest: true},
		})
	})

	It("I11 lifecycle gained: every declared channel is judged and applied at once, without a new registration", func(ctx SpecContext) {
		lifecycle(ctx, c, false)
		x, y := w.channel(ctx, "x", "discord", "discord:111:c1"), w.channel(ctx, "y", "discord", "discord:111:c2")
		z, open := w.channel(ctx, "z", "discord", "discord:111:c3"), w.channel(ctx, "w", "discord", "discord:111:c4")
		w.declare(ctx, "discord", func(c *v1.Connector) {
			c.Spec.Subscription = v1.Subscription{Mode: v1.SubscriptionAllowList, Allow: []string{"discord:111:c1"}}
		})
		w.start()
		for _, channel := range []*v1.Channel{x, y, z, open} {
			saying(ctx, channel, v1.ConditionSettled, "False/NotPermitted")
		}
		Expect(w.answered(ctx, w.decision(ctx, "", "z", v1.DecisionClose)).Cause).To(Equal(v1.CauseNotPermitted))
		Expect(w.answered(ctx, w.decision(ctx, "", "w", v1.DecisionOpen)).Cause).To(Equal(v1.CauseNotPermitted))
		Expect(c.Count("channels/open", "") + c.Count("channels/close", "")).To(BeZero())

		lifecycle(ctx, c, true)
		Expect(w.settled(ctx, x, v1.StateOpen).Decision.Source).To(Equal(v1.SourceSubscriptionPolicy))
		Expect(w.settled(ctx, y, v1.StateClosed).Decision.Source).To(Equal(v1.SourceDefaultClosed))
		w.settled(ctx, z, v1.StateClosed)
		w.settled(ctx, open, v1.StateOpen)
		for _, id := range []string{"discord:111:c1", "discord:111:c2", "discord:111:c3", "discord:111:c4"} {
			Expect(c.Count("channels/open", id)+c.Count("channels/close", id)).To(Equal(1), id)
		}
		Expect(c.Entries(connector.Filter{Direction: connector.Out, Kind: connector.Request, Method: "channels/register"})).To(HaveLen(1))
	})

	It("I07 and G17 lifecycle lost: decisions stand, a confirmed close stays confirmed, and nothing is sent", func(ctx SpecContext) {
		channel := w.channel(ctx, "x", "discord", "discord:111:c1")
		discord := w.declare(ctx, "discord")
		w.start()
		w.settled(ctx, channel, v1.StateClosed)
		w.says(ctx, discord, v1.ConditionReady, "True/Granted")
		before := discord.Status.ManifestRevision
		Expect(before).To(HavePrefix("sha256:"))
		lifecycle(ctx, c, false)
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(discord), discord)).To(Succeed())
			g.Expect(discord.Status.EffectiveCapabilities).NotTo(ContainElement("channels.lifecycle"))
			g.Expect(discord.Status.ManifestRevision).NotTo(Equal(before))
		}).Should(Succeed())
		c.Reset()
		Expect(w.answered(ctx, w.decision(ctx, "", "x", v1.DecisionDecline, declines)).Result).To(Equal(v1.ResultRemainedClosed))
		Expect(w.answered(ctx, w.decision(ctx, "", "x", v1.DecisionOpen)).Cause).To(Equal(v1.CauseNotPermitted))
		Expect(c.Count("channels/open", "") + c.Count("channels/close", "")).To(BeZero())
	})
})

var _ = Describe("A connector over TCP", func() {
	It("is served like one over a WebSocket", func(ctx SpecContext) {
		w := newWorld(ctx)
		server := w.another(ctx)
		address := lines(server.URL())
		_, err := control.WritePod(ctx, w.namespace, "discord-0", map[string]string{"app": "discord"}, address)
		Expect(err).NotTo(HaveOccurred())
		w.declare(ctx, "discord", func(c *v1.Connector) { c.Spec.Transport.Type = v1.TransportTCP })
		general := w.channel(ctx, "general", "discord", "discord:111:c1")
		w.start()
		w.settled(ctx, general, v1.StateClosed)
		Expect(w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionOpen)).Result).To(Equal(v1.ResultOpened))
	})
})

// lines serves a connector's WebSocket as lines over TCP, and returns where.
func lines(url string) string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(listener.Close)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go carry(conn, url)
		}
	}()
	return listener.Addr().String()
}

// carry carries lines to a WebSocket and frames back, until either ends.
func carry(conn net.Conn, url string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer conn.Close()
	ws, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }() // the other side may be gone already
	go func() {
		defer cancel()
		scanner := bufio.NewScanner(conn)
		for scanner.Scan() {
			if ws.Write(ctx, websocket.MessageText, scanner.Bytes()) != nil {
				return
			}
		}
	}()
	for {
		_, frame, err := ws.Read(ctx)
		if err != nil {
			return
		}
		if _, err := conn.Write(append(frame, '\n')); err != nil {
			return
		}
	}
}
