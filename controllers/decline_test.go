package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/test/connector"
)

// declines makes a decision a decline by the resident.
func declines(d *v1.ChannelDecision) {
	d.Spec.Decision, d.Spec.Source = v1.DecisionDecline, v1.SourceInvitationDeclined
}

func acknowledging(d *v1.ChannelDecision) {
	d.Spec.Acknowledge = &v1.Acknowledge{MessageID: "m-1", Text: "👀 canary"}
}

var _ = Describe("A decline", func() {
	const id = "discord:111:c1"
	var (
		w       *world
		c       *connector.Connector
		general *v1.Channel
	)
	BeforeEach(func(ctx SpecContext) {
		w = newWorld(ctx)
		c = w.connector(ctx, "discord", connector.Options{Channels: connector.Generate("discord:111", 1)})
		general = w.channel(ctx, "general", "discord", id)
	})
	live := func(ctx SpecContext, edit ...func(*v1.Connector)) {
		GinkgoHelper()
		w.declare(ctx, "discord", edit...)
		w.start()
		w.settled(ctx, general, v1.StateClosed)
		c.Reset()
	}

	It("G01 of a closed channel leaves it closed and sends nothing, and is told apart from a default close", func(ctx SpecContext) {
		live(ctx)
		answer := w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionDecline, declines))
		Expect(answer.Result).To(Equal(v1.ResultRemainedClosed))
		Expect(c.Count("", id)).To(BeZero())
		Expect(w.record(ctx, "discord", id).Record.Source).To(Equal(v1.SourceInvitationDeclined))
	})

	It("G21 shows its acknowledgement once, and keeps its text out of status", func(ctx SpecContext) {
		live(ctx)
		answer := w.answered(ctx, w.decision(ctx, "no-thanks", "general", v1.DecisionDecline, declines, acknowledging))
		Expect(answer.Result).To(Equal(v1.ResultRemainedClosed))
		Expect(answer.Acknowledgement.State).To(Equal(v1.Acknowledged))
		Expect(c.Count("channels/acknowledge", id)).To(Equal(1))

		c.Once(connector.On("channels/acknowledge", id).Failing(-32603, "no such message"))
		failed := w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionDecline, declines, acknowledging))
		Expect(failed.Result).To(Equal(v1.ResultRemainedClosed), "a failed acknowledgement never undoes the decline")
		Expect(failed.Acknowledgement.State).To(Equal(v1.AcknowledgementFailed))
		Expect(failed.Acknowledgement.Message).To(ContainSubstring("no such message"))
	})

	It("G18 is refused while the channel is open", func(ctx SpecContext) {
		live(ctx)
		w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionOpen))
		answer := w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionDecline, declines))
		Expect(answer.Result).To(Equal(v1.ResultRefused))
		Expect(answer.Cause).To(Equal(v1.CauseStillOpen))
		Expect(answer.Message).To(ContainSubstring("channel_close"))
	})

	It("G13 that a later open replaces says so, and sends nothing more", func(ctx SpecContext) {
		live(ctx)
		c.Once(connector.On("channels/acknowledge", id).HeldAt("ack").Beside())
		decline := w.decision(ctx, "", "general", v1.DecisionDecline, declines, acknowledging)
		Expect(c.WaitHeld(ctx, "ack", 1)).To(Succeed())
		Expect(w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionOpen)).Result).To(Equal(v1.ResultOpened))
		c.Release("ack")
		answer := w.answered(ctx, decline)
		Expect(answer.Result).To(Equal(v1.ResultReplaced))
		Expect(answer.Message).To(ContainSubstring("a later decision to open the channel replaced it"))
		Expect(c.Count("channels/close", id)).To(BeZero())
		Expect(c.Count("channels/open", id)).To(Equal(1))
	})

	It("G19 of a channel whose open failed closes it", func(ctx SpecContext) {
		live(ctx)
		c.Once(connector.On("channels/open", id).Failing(-32603, "no"))
		w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionOpen))
		c.Reset()
		answer := w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionDecline, declines))
		Expect(answer.Result).To(Equal(v1.ResultRemainedClosed))
		Expect(c.Count("channels/close", id)).To(Equal(1))
	})

	It("G10 on a connector that is gone is recorded, and says whom to ask", func(ctx SpecContext) {
		w.declare(ctx, "discord", func(c *v1.Connector) { c.Spec.Suspend = true })
		w.start()
		answer := w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionDecline, declines, acknowledging))
		Expect(answer.Result).To(Equal(v1.ResultDeclined))
		Expect(answer.Message).To(ContainSubstring("the connector is gone"))
		Expect(answer.Message).To(ContainSubstring("ask whoever runs the operator"))
		Expect(answer.Acknowledgement.State).To(Equal(v1.AcknowledgementFailed))
		Expect(w.record(ctx, "discord", id).Record.Source).To(Equal(v1.SourceInvitationDeclined))
	})

	It("G09 where the host may not close is recorded, and the acknowledgement goes out", func(ctx SpecContext) {
		w.declare(ctx, "discord", func(c *v1.Connector) { c.Spec.Grant = &v1.ConnectorGrant{Deny: []string{"channels.lifecycle"}} })
		w.start()
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(general), general)).To(Succeed())
			g.Expect(general.Status.Registration).To(Equal(v1.RegistrationDeclared))
		}).Should(Succeed())
		answer := w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionDecline, declines, acknowledging))
		Expect(answer.Result).To(Equal(v1.ResultDeclined))
		Expect(answer.Message).To(ContainSubstring("no authority"))
		Expect(answer.Acknowledgement.State).To(Equal(v1.Acknowledged))
	})

	It("that a restart interrupts may have been posted, and is not posted again", func(ctx SpecContext) {
		live(ctx)
		c.Once(connector.On("channels/acknowledge", id).HeldAt("ack").Beside())
		decline := w.decision(ctx, "", "general", v1.DecisionDecline, declines, acknowledging)
		Expect(c.WaitHeld(ctx, "ack", 1)).To(Succeed())
		w.stop()
		c.Release("ack")
		w.start()
		answer := w.answered(ctx, decline)
		Expect(answer.Result).To(Equal(v1.ResultRemainedClosed))
		Expect(answer.Acknowledgement.State).To(Equal(v1.AcknowledgementInterrupted))
		Expect(c.Count("channels/acknowledge", id)).To(Equal(1))
	})

	It("posts nothing where publishing is forbidden", func(ctx SpecContext) {
		live(ctx)
		general.Spec.Publishing = v1.PublishingForbidden
		Expect(k8s.Update(ctx, general)).To(Succeed())
		answer := w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionDecline, declines, acknowledging))
		Expect(answer.Result).To(Equal(v1.ResultRemainedClosed))
		Expect(answer.Acknowledgement.Message).To(ContainSubstring("spec.publishing"))
		Expect(c.Count("channels/acknowledge", "")).To(BeZero())
	})
})
