package controllers

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/test/connector"
)

// versions is the resource version of every object of a world that a manager writes but Connectors.
func (w *world) versions(ctx context.Context) map[string]string {
	GinkgoHelper()
	versions := map[string]string{}
	for _, list := range []client.ObjectList{&v1.ChannelList{}, &v1.ChannelRecordList{}, &v1.ChannelDecisionList{}} {
		Expect(k8s.List(ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		Expect(meta.EachListItem(list, func(o runtime.Object) error {
			object := o.(client.Object)
			versions[fmt.Sprintf("%T/%s", object, object.GetName())] = object.GetResourceVersion()
			return nil
		})).To(Succeed())
	}
	return versions
}

func auto(c *v1.Connector)     { c.Spec.Subscription.Mode = v1.SubscriptionAuto }
func declared(c *v1.Connector) { c.Spec.Channels = v1.ChannelsDeclared }

// found is the discovered Channel of an id.
func (w *world) found(ctx context.Context, id string) *v1.Channel {
	GinkgoHelper()
	var channel *v1.Channel
	Eventually(ctx, func(g Gomega) {
		var list v1.ChannelList
		g.Expect(k8s.List(ctx, &list, client.InNamespace(w.namespace), client.MatchingLabels{v1.DiscoveredLabel: "true"})).To(Succeed())
		i := slices.IndexFunc(list.Items, func(c v1.Channel) bool { return c.Spec.ChannelID == id && c.DeletionTimestamp.IsZero() })
		g.Expect(i).NotTo(Equal(-1))
		channel = &list.Items[i]
	}).Should(Succeed())
	return channel
}

var _ = Describe("A restart", func() {
	It("finds the same record and the same transport, and decides and writes nothing", func(ctx SpecContext) {
		w := newWorld(ctx)
		server := w.connector(ctx, "discord", connector.Options{Channels: connector.Generate("discord:111", 20), ReplaceConnection: true})
		c := w.declare(ctx, "discord", auto)
		w.start()
		for _, d := range connector.Generate("discord:111", 20) {
			w.settled(ctx, w.found(ctx, d.ID), v1.StateOpen)
		}
		first := w.found(ctx, "discord:111:c1")
		w.answered(ctx, w.decision(ctx, "close-it", first.Name, v1.DecisionClose))
		w.settled(ctx, first, v1.StateClosed)
		w.stop()
		before := w.versions(ctx)
		server.Reset()

		w.start()
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(c), c)).To(Succeed())
			g.Expect(c.Status.SessionGeneration).To(Equal(int64(2)))
			g.Expect(c.Status.Channels).To(Equal(&v1.ChannelCounts{Registered: 20, Open: 19}))
		}).Should(Succeed())
		Expect(w.versions(ctx)).To(Equal(before))
		Expect(server.Count("channels/open", "")).To(Equal(19))
		Expect(server.Count("channels/close", "")).To(Equal(1))
	})

	It("of the connector confirms everything anew, and nothing is written for it", func(ctx SpecContext) {
		w := newWorld(ctx)
		server := w.connector(ctx, "discord", connector.Options{Channels: connector.Generate("discord:111", 5)})
		w.declare(ctx, "discord", auto)
		w.start()
		for _, d := range server.Channels() {
			w.settled(ctx, w.found(ctx, d.ID), v1.StateOpen)
		}
		before := w.versions(ctx)
		server.Reset()
		server.Restart()
		for _, d := range server.Channels() {
			Expect(server.WaitOpen(ctx, d.ID, true)).To(Succeed())
			Expect(server.Count("channels/open", d.ID)).To(Equal(1))
		}
		Expect(w.versions(ctx)).To(Equal(before))
	})
})

var _ = Describe("Discovery", func() {
	var (
		w      *world
		server *connector.Connector
	)
	BeforeEach(func(ctx SpecContext) {
		w = newWorld(ctx)
		server = w.connector(ctx, "discord", connector.Options{Channels: connector.Generate("discord:111", 2)})
	})

	It("makes a Channel for what the connector declares, and makes it again when somebody deletes it", func(ctx SpecContext) {
		c := w.declare(ctx, "discord")
		w.start()
		channel := w.found(ctx, "discord:111:c1")
		Expect(channel.Name).To(MatchRegexp(`^discord-discord-111-c1-[0-9a-f]{10}$`))
		Expect(channel.OwnerReferences).To(HaveLen(1))
		Expect(channel.OwnerReferences[0].UID).To(Equal(c.UID))
		w.settled(ctx, channel, v1.StateClosed)
		Expect(k8s.Delete(ctx, channel)).To(Succeed())
		Eventually(ctx, func() string { return string(w.found(ctx, "discord:111:c1").UID) }).ShouldNot(Equal(string(channel.UID)))

		By("what is added later is discovered, too, and what is removed stays for a day")
		_, err := server.Add(ctx, connector.AsNotification, connector.NewDescriptor("discord:111:c9"))
		Expect(err).NotTo(HaveOccurred())
		added := w.found(ctx, "discord:111:c9")
		w.settled(ctx, added, v1.StateClosed)
		_, err = server.Remove(ctx, connector.AsNotification, "discord:111:c9")
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(added), added)).To(Succeed())
			g.Expect(condition(added.Status.Conditions, v1.ConditionRegistered)).To(Equal("False/NotRegistered"))
		}).WithTimeout(outageGrace * 2).Should(Succeed())
	})

	It("gives way to a Channel that somebody makes, and nothing is sent for it", func(ctx SpecContext) {
		w.declare(ctx, "discord")
		w.start()
		discovered := w.found(ctx, "discord:111:c1")
		w.answered(ctx, w.decision(ctx, "open-it", discovered.Name, v1.DecisionOpen))
		w.settled(ctx, discovered, v1.StateOpen)
		server.Reset()
		made := w.channel(ctx, "general", "discord", "discord:111:c1")
		Expect(w.settled(ctx, made, v1.StateOpen).Decision.Revision).To(Equal(int64(1)))
		Eventually(ctx, func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(discovered), discovered) }).ShouldNot(Succeed())
		Expect(server.Count("channels/open", "") + server.Count("channels/close", "")).To(BeZero())
	})

	It("of two that people made the older stands, and a decision on the other is one on the channel", func(ctx SpecContext) {
		w.declare(ctx, "discord")
		first := w.channel(ctx, "older", "discord", "discord:111:c1")
		w.start()
		w.settled(ctx, first, v1.StateClosed)
		second := younger(ctx, first, func() *v1.Channel { return w.channel(ctx, "younger", "discord", "discord:111:c1") })
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(second), second)).To(Succeed())
			g.Expect(condition(second.Status.Conditions, v1.ConditionReady)).To(Equal("False/DuplicateChannel"))
			g.Expect(condition(second.Status.Conditions, v1.ConditionStalled)).To(Equal("True/DuplicateChannel"))
		}).Should(Succeed())
		Expect(w.answered(ctx, w.decision(ctx, "open-it", second.Name, v1.DecisionOpen)).Result).To(Equal(v1.ResultOpened))
		w.settled(ctx, first, v1.StateOpen)
		Expect(k8s.Delete(ctx, first)).To(Succeed())
		Expect(w.settled(ctx, second, v1.StateOpen).Decision.Revision).To(Equal(int64(1)))
	})

	It("where channels are declared, one without an object is closed once and its messages are refused", func(ctx SpecContext) {
		c := w.declare(ctx, "discord", declared, auto)
		general := w.channel(ctx, "general", "discord", "discord:111:c1")
		w.start()
		w.settled(ctx, general, v1.StateOpen)
		Expect(server.WaitCount(ctx, "channels/close", "discord:111:c2", 1)).To(Succeed())
		verdicts, err := server.Incoming(ctx, server.NewMessage(connector.Spoken{ChannelID: "discord:111:c2", Text: "hello"}))
		Expect(err).NotTo(HaveOccurred())
		Expect(verdicts[0].Accepted).To(BeFalse())
		Expect(w.record(ctx, "discord", "discord:111:c2")).To(BeNil())
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(c), c)).To(Succeed())
			g.Expect(c.Status.Channels).To(Equal(&v1.ChannelCounts{Registered: 2, Open: 1}))
		}).Should(Succeed())

		By("an object that comes later is served at once")
		dev := w.channel(ctx, "dev", "discord", "discord:111:c2")
		Expect(w.settled(ctx, dev, v1.StateOpen).Decision.Source).To(Equal(v1.SourceSubscriptionPolicy))
	})
})

var _ = Describe("Admission", func() {
	var (
		w      *world
		server *connector.Connector
	)
	const id = "discord:111:c1"
	BeforeEach(func(ctx SpecContext) {
		w = newWorld(ctx)
		server = w.connector(ctx, "discord", connector.Options{Channels: connector.Generate("discord:111", 1)})
	})

	It("A02 and A05 the connector's wish opens what nobody decided", func(ctx SpecContext) {
		_, err := server.Add(ctx, connector.Untold, connector.NewDescriptor("discord:111:c2").Initially(true))
		Expect(err).NotTo(HaveOccurred())
		w.declare(ctx, "discord")
		w.start()
		Expect(w.settled(ctx, w.found(ctx, "discord:111:c2"), v1.StateOpen).Decision.Source).To(Equal(v1.SourceServerBootstrap))
		first := w.found(ctx, id)
		w.settled(ctx, first, v1.StateClosed)
		_, err = server.Add(ctx, connector.AsNotification, connector.NewDescriptor(id).Initially(true))
		Expect(err).NotTo(HaveOccurred())
		Expect(w.settled(ctx, first, v1.StateOpen).Decision.Source).To(Equal(v1.SourceServerBootstrap))
	})

	It("A06 a subscription that changes opens at once what nobody decided, and is told once", func(ctx SpecContext) {
		c := w.declare(ctx, "discord")
		w.start()
		channel := w.found(ctx, id)
		w.settled(ctx, channel, v1.StateClosed)
		Eventually(ctx, func() error {
			if err := k8s.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
				return err
			}
			auto(c)
			return k8s.Update(ctx, c)
		}).Should(Succeed())
		Expect(w.settled(ctx, channel, v1.StateOpen).Decision.Source).To(Equal(v1.SourceSubscriptionPolicy))
		Expect(w.record(ctx, "discord", id).PolicyNoticeGiven).To(BeTrue())
		Eventually(ctx, func() string {
			out, _ := control.Kubectl(ctx, "-n", w.namespace, "get", "events")
			return out
		}).Should(ContainSubstring("SelectedByPolicy"))
	})

	It("A07 neither the connector nor the policy opens what the resident closed", func(ctx SpecContext) {
		c := w.declare(ctx, "discord")
		w.start()
		channel := w.found(ctx, id)
		w.settled(ctx, channel, v1.StateClosed)
		w.answered(ctx, w.decision(ctx, "close-it", channel.Name, v1.DecisionClose))
		Eventually(ctx, func() error {
			if err := k8s.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
				return err
			}
			auto(c)
			return k8s.Update(ctx, c)
		}).Should(Succeed())
		server.Reset()
		_, err := server.Add(ctx, connector.AsNotification, connector.NewDescriptor(id).Initially(true))
		Expect(err).NotTo(HaveOccurred())
		Expect(server.WaitCount(ctx, "channels/close", id, 1)).To(Succeed())
		Expect(server.Count("channels/open", id)).To(BeZero())
		Expect(w.record(ctx, "discord", id).Revision).To(Equal(int64(1)))
	})

	It("a record that somebody deletes leaves its channel undecided", func(ctx SpecContext) {
		w.declare(ctx, "discord")
		w.start()
		channel := w.found(ctx, id)
		w.settled(ctx, channel, v1.StateClosed)
		w.answered(ctx, w.decision(ctx, "", channel.Name, v1.DecisionOpen))
		w.settled(ctx, channel, v1.StateOpen)
		Expect(k8s.Delete(ctx, w.record(ctx, "discord", id))).To(Succeed())
		Expect(w.settled(ctx, channel, v1.StateClosed).Decision.Source).To(Equal(v1.SourceDefaultClosed))
		Expect(server.IsOpen(id)).To(BeFalse())
	})

	It("F19 a message shows that the channel is open, whatever is decided", func(ctx SpecContext) {
		w.declare(ctx, "discord")
		w.start()
		channel := w.found(ctx, id)
		w.settled(ctx, channel, v1.StateClosed)
		verdicts, err := server.Incoming(ctx, server.NewMessage(connector.Spoken{ChannelID: id, Text: "a canary that nobody may see"}))
		Expect(err).NotTo(HaveOccurred())
		Expect(verdicts[0].Accepted).To(BeFalse())
		Expect(verdicts[0].Reason).To(Equal("no resident"))
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(channel), channel)).To(Succeed())
			g.Expect(channel.Status.Transport).To(Equal(v1.TransportOpen))
			g.Expect(condition(channel.Status.Conditions, v1.ConditionSettled)).To(HavePrefix("Unknown/"))
		}).WithTimeout(2 * outageGrace).Should(Succeed())
		out, err := control.Kubectl(ctx, "-n", w.namespace, "get", "connectors,channels,channelrecords,events", "-o", "yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).NotTo(ContainSubstring("canary"))
	})
})
