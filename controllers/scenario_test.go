package controllers

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/pair"
	"mcpl.dev/operator/test/connector"
)

// Scenarios of declines and of records that outlive what they are about, beside those that stand
// with their topics.
var _ = Describe("Scenarios", func() {
	const id = "discord:111:c1"
	var (
		w       *world
		c       *connector.Connector
		discord *v1.Connector
		general *v1.Channel
	)
	BeforeEach(func(ctx SpecContext) {
		w = newWorld(ctx)
		c = w.connector(ctx, "discord", connector.Options{Channels: connector.Generate("discord:111", 1)})
		general = w.channel(ctx, "general", "discord", id)
		discord = w.declare(ctx, "discord", func(c *v1.Connector) { c.Spec.RequestTimeoutSeconds = ptr.To(int32(5)) })
	})
	channel := func() pair.Key { return pair.Key{Namespace: w.namespace, ServerID: "discord", ChannelID: id} }
	live := func(ctx SpecContext) {
		GinkgoHelper()
		w.start()
		w.settled(ctx, general, v1.StateClosed)
		c.Reset()
	}
	// unconfirmed gives the channel another target, so that nobody knows whether it is closed.
	unconfirmed := func(ctx context.Context) {
		GinkgoHelper()
		_, err := c.Update(ctx, connector.AsNotification, connector.NewDescriptor(id).At("discord", map[string]any{"channelId": "moved"}))
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() v1.TransportState { return w.channels.sessions.Channel(channel()).Transport }).Should(Equal(v1.TransportUnconfirmed))
	}
	decline := func(ctx context.Context, edit ...func(*v1.ChannelDecision)) *v1.ChannelDecision {
		GinkgoHelper()
		return w.decision(ctx, "", "general", v1.DecisionDecline, append([]func(*v1.ChannelDecision){declines}, edit...)...)
	}

	It("G02 a decline where nobody knows closes, and remains closed once that is confirmed", func(ctx SpecContext) {
		live(ctx)
		unconfirmed(ctx)
		Expect(w.answered(ctx, decline(ctx)).Result).To(Equal(v1.ResultRemainedClosed))
		Expect(c.Count("channels/close", id)).To(Equal(1))
	})

	It("G03 a decline of one that only a message named closes it", func(ctx SpecContext) {
		live(ctx)
		const thread = "discord:111:thread"
		_, err := c.PushEvent(ctx, connector.Push{FeatureSet: "discord.messaging", EventID: "e1", Origin: map[string]any{"mcplChannelId": thread}})
		Expect(err).NotTo(HaveOccurred())
		answer := w.answered(ctx, w.decision(ctx, "", "", v1.DecisionDecline, declines, func(d *v1.ChannelDecision) {
			d.Spec.ChannelRef = v1.ChannelReference{ServerID: "discord", ChannelID: thread}
		}))
		Expect(answer.Result).To(Equal(v1.ResultRemainedClosed))
		Expect(c.Count("channels/close", thread)).To(Equal(1))
	})

	It("G04 a decline whose close is not answered says so, and what may be done", func(ctx SpecContext) {
		live(ctx)
		unconfirmed(ctx)
		c.Once(connector.On("channels/close", id).NeverAnswered())
		answer := w.answered(ctx, decline(ctx))
		Expect(answer.Result).To(Equal(v1.ResultDeclined))
		Expect(answer.Message).To(And(ContainSubstring("did not answer the close"), ContainSubstring("channel_close")))
	})

	It("G05 a decline whose authority goes during its close says whom to ask", func(ctx SpecContext) {
		c.Change(func(b *connector.Behavior) { b.ServeManifest = true })
		live(ctx)
		unconfirmed(ctx)
		c.Once(connector.On("channels/close", id).HeldAt("close").Beside().Failing(-32002, "capability denied"))
		d := decline(ctx)
		Expect(c.WaitHeld(ctx, "close", 1)).To(Succeed())
		lifecycle(ctx, c, false)
		Eventually(ctx, func() bool { return w.channels.sessions.Channel(channel()).Lifecycle }).Should(BeFalse())
		c.Release("close")
		answer := w.answered(ctx, d)
		Expect(answer.Result).To(Equal(v1.ResultDeclined))
		Expect(answer.Message).To(And(ContainSubstring("its close failed"), ContainSubstring("closed sooner, ask")))
	})

	It("G06 a decline whose connector goes during its close says whom to ask", func(ctx SpecContext) {
		live(ctx)
		unconfirmed(ctx)
		c.Once(connector.On("channels/close", id).HeldAt("close"))
		d := decline(ctx)
		Expect(c.WaitHeld(ctx, "close", 1)).To(Succeed())
		change(ctx, discord, func(c *v1.Connector) { c.Spec.Suspend = true })
		answer := w.answered(ctx, d)
		Expect(answer.Result).To(Equal(v1.ResultDeclined))
		Expect(answer.Message).To(ContainSubstring("needed back, ask whoever runs the operator"))
	})

	It("G11 of two declines the first leaves it to the second's close, which is still under way", func(ctx SpecContext) {
		live(ctx)
		unconfirmed(ctx)
		c.Once(connector.On("channels/close", id).HeldAt("first"), connector.On("channels/close", id).HeldAt("second"))
		first := decline(ctx)
		Expect(c.WaitHeld(ctx, "first", 1)).To(Succeed())
		second := decline(ctx)
		Eventually(ctx, func() int { return w.channels.sessions.Channel(channel()).Outstanding }).Should(Equal(2))
		c.Release("first")
		answer := w.answered(ctx, first)
		Expect(answer.Result).To(Equal(v1.ResultDeclined))
		Expect(answer.Message).To(ContainSubstring("still under way applies the decline"))
		c.Release("second")
		Expect(w.answered(ctx, second).Result).To(Equal(v1.ResultRemainedClosed))
	})

	It("G14 a tune-out that comes meanwhile replaces a decline, which sends nothing", func(ctx SpecContext) {
		live(ctx)
		unconfirmed(ctx)
		c.Once(connector.On("channels/acknowledge", id).HeldAt("ack").Beside())
		d := decline(ctx, acknowledging)
		Expect(c.WaitHeld(ctx, "ack", 1)).To(Succeed())
		record := w.record(ctx, "discord", id)
		record.Revision++
		record.Record.ID, record.Record.State, record.Record.Source, record.Record.DecisionRef = "tuned", v1.StateTunedOut, v1.SourceAgentTool, nil
		record.TuneOut = &v1.TuneOutEpoch{EpochID: "e", StartedAt: record.Record.At, Parameters: v1.TuneOutParameters{CadenceSeconds: 1800, BacklogCap: 200, MaxWakes: 5}}
		Expect(k8s.Update(ctx, record)).To(Succeed())
		Eventually(ctx, func() v1.State { return w.channels.ledger.Record(channel()).State }).Should(Equal(v1.StateTunedOut))
		c.Release("ack")
		answer := w.answered(ctx, d)
		Expect(answer.Result).To(Equal(v1.ResultReplaced))
		Expect(answer.Message).To(ContainSubstring("a later tune-out"))
		Expect(c.Count("channels/close", id)).To(BeZero())
	})

	It("G16 and G08 a channel that goes meanwhile can't be reached by any tool", func(ctx SpecContext) {
		live(ctx)
		c.Once(connector.On("channels/acknowledge", id).HeldAt("ack").Beside())
		replaced := decline(ctx, acknowledging)
		Expect(c.WaitHeld(ctx, "ack", 1)).To(Succeed())
		w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionOpen))
		_, err := c.Remove(ctx, connector.AsNotification, id)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() bool { return w.channels.sessions.Channel(channel()).Registered }).Should(BeFalse())
		c.Release("ack")
		answer := w.answered(ctx, replaced)
		Expect(answer.Result).To(Equal(v1.ResultReplaced))
		Expect(answer.Message).To(ContainSubstring("no tool can reach the channel"))

		By("G08 and one that nothing replaced is recorded all the same")
		answer = w.answered(ctx, decline(ctx))
		Expect(answer.Result).To(Equal(v1.ResultDeclined))
		Expect(answer.Message).To(ContainSubstring("does not register the channel any more"))
	})

	It("I01 the resident's close holds over words, a restart and the connector's wish", func(ctx SpecContext) {
		live(ctx)
		w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionClose))
		Expect(ended(ctx, w.channels.Engage(channel(), speech)).Opening).To(BeFalse())
		w.stop()
		_, err := c.Announce(ctx, connector.Untold, id, true)
		Expect(err).NotTo(HaveOccurred())
		c.Reset()
		w.start()
		Expect(c.WaitCount(ctx, "channels/close", id, 1)).To(Succeed())
		Expect(w.settled(ctx, general, v1.StateClosed).Decision.Source).To(Equal(v1.SourceAgentTool))
		Expect(c.Count("channels/open", id)).To(BeZero())
	})

	It("I02 an import whose source could not be read is never lifted, and a machine may close it", func(ctx SpecContext) {
		w.imported(ctx, v1.StateOpen, v1.SourceUnknown)
		w.start()
		w.settled(ctx, general, v1.StateOpen)
		Expect(w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionClose, by(v1.SourceHousekeeping))).Result).To(Equal(v1.ResultClosed))
		change(ctx, discord, auto)
		Eventually(ctx, func() int { return c.Count("channels/close", id) }).Should(BeNumerically(">=", 1))
		Expect(w.record(ctx, "discord", id).Record.Source).To(Equal(v1.SourceHousekeeping))
	})

	It("I09 what was decided applies to a connector that is gone and made anew", func(ctx SpecContext) {
		live(ctx)
		w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionOpen))
		Expect(k8s.Delete(ctx, discord)).To(Succeed())
		saying(ctx, general, v1.ConditionRegistered, "False/ConnectorGone")
		Eventually(ctx, func() bool { return c.Status().Connected }).Should(BeFalse())
		w.declare(ctx, "discord")
		Expect(w.settled(ctx, general, v1.StateOpen).Decision.Revision).To(Equal(int64(1)))
	})

	It("F04 and F20 work for a registration that goes is cancelled, and what comes back gets its own", func(ctx SpecContext) {
		live(ctx)
		c.Once(connector.On("channels/open", id).HeldAt("open"))
		open := w.decision(ctx, "", "general", v1.DecisionOpen)
		Expect(c.WaitHeld(ctx, "open", 1)).To(Succeed())
		behind := w.decision(ctx, "", "general", v1.DecisionClose)
		Eventually(ctx, func() int { return w.channels.sessions.Channel(channel()).Outstanding }).Should(Equal(2))
		_, err := c.Remove(ctx, connector.AsNotification, id)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() bool { return w.channels.sessions.Channel(channel()).Registered }).Should(BeFalse())
		c.Release("open")
		Expect(w.answered(ctx, open).Result).To(Equal(v1.ResultSuperseded))
		Expect(w.answered(ctx, behind).Cause).To(Equal(v1.CauseRegistrationGone))
		Expect(c.Count("channels/close", id)).To(BeZero())
		_, err = c.Add(ctx, connector.AsNotification, connector.NewDescriptor(id))
		Expect(err).NotTo(HaveOccurred())
		w.settled(ctx, general, v1.StateClosed)
		Expect(c.Count("channels/close", id)).To(Equal(1))
	})
})
