package controllers

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/test/connector"
)

// change edits an object as it is on the API server.
func change[T client.Object](ctx context.Context, o T, edit func(T)) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		edit(o)
		return k8s.Update(ctx, o)
	}).Should(Succeed())
}

// saying waits until a Channel's condition is "Status/Reason".
func saying(ctx context.Context, c *v1.Channel, kind, want string) v1.ChannelStatus {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(c), c)).To(Succeed())
		g.Expect(condition(c.Status.Conditions, kind)).To(Equal(want))
	}).Should(Succeed())
	return c.Status
}

var _ = Describe("The platform's hand", func() {
	const id = "discord:111:c1"
	var (
		w       *world
		c       *connector.Connector
		discord *v1.Connector
		general *v1.Channel
	)
	held := &v1.Hold{State: v1.StateClosed, Reason: "incident 4711"}
	BeforeEach(func(ctx SpecContext) {
		w = newWorld(ctx)
		c = w.connector(ctx, "discord", connector.Options{Channels: connector.Generate("discord:111", 2)})
		general = w.channel(ctx, "general", "discord", id)
		discord = w.declare(ctx, "discord")
		w.start()
		w.settled(ctx, general, v1.StateClosed)
	})
	open := func(ctx SpecContext) v1.ChannelDecisionStatus {
		GinkgoHelper()
		return w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionOpen))
	}

	It("a hold closes an open channel, refuses opens, records closes, and is lifted without a trace", func(ctx SpecContext) {
		open(ctx)
		w.settled(ctx, general, v1.StateOpen)
		change(ctx, general, func(c *v1.Channel) { c.Spec.Hold = held })
		saying(ctx, general, v1.ConditionHeld, "True/Hold")
		Eventually(ctx, func() bool { return c.IsOpen(id) }).Should(BeFalse())
		status := saying(ctx, general, v1.ConditionSettled, "True/Closed")
		Expect(status.Desired).To(Equal("Closed (held)"))
		Expect(status.Decision.State).To(Equal(v1.StateOpen), "the record stands")

		refused := open(ctx)
		Expect(refused.Result).To(Equal(v1.ResultRefused))
		Expect(refused.Cause).To(Equal(v1.CauseHeld))

		change(ctx, general, func(c *v1.Channel) { c.Spec.Hold = nil })
		w.settled(ctx, general, v1.StateOpen)
		Expect(c.IsOpen(id)).To(BeTrue())
		Expect(w.record(ctx, "discord", id).Revision).To(Equal(int64(1)))
	})

	It("a hold on the Connector holds all its channels, and nothing is lifted meanwhile", func(ctx SpecContext) {
		open(ctx)
		w.settled(ctx, general, v1.StateOpen)
		change(ctx, discord, func(c *v1.Connector) { c.Spec.Hold = held; auto(c) })
		saying(ctx, general, v1.ConditionHeld, "True/Hold")
		Eventually(ctx, func() []string { return c.OpenChannels() }).Should(BeEmpty())
		Expect(w.record(ctx, "discord", "discord:111:c2")).To(BeNil())
		change(ctx, discord, func(c *v1.Connector) { c.Spec.Hold = nil })
		w.settled(ctx, general, v1.StateOpen)
		Expect(w.settled(ctx, w.found(ctx, "discord:111:c2"), v1.StateOpen).Decision.Source).To(Equal(v1.SourceSubscriptionPolicy))
	})

	It("an open that a hold overtakes fails with it, and is applied when it is lifted", func(ctx SpecContext) {
		c.Once(connector.On("channels/open", id).HeldAt("open"))
		d := w.decision(ctx, "", "general", v1.DecisionOpen)
		Expect(c.WaitHeld(ctx, "open", 1)).To(Succeed())
		change(ctx, general, func(c *v1.Channel) { c.Spec.Hold = held })
		saying(ctx, general, v1.ConditionHeld, "True/Hold")
		c.Release("open")
		answer := w.answered(ctx, d)
		Expect(answer.Result).To(Equal(v1.ResultFailed))
		Expect(answer.Cause).To(Equal(v1.CauseHeld))
		Eventually(ctx, func() bool { return c.IsOpen(id) }).Should(BeFalse())
		change(ctx, general, func(c *v1.Channel) { c.Spec.Hold = nil })
		w.settled(ctx, general, v1.StateOpen)
	})

	It("admission decides for its channel what nobody has decided, at once", func(ctx SpecContext) {
		change(ctx, general, func(c *v1.Channel) { c.Spec.Admission = v1.StateOpen })
		Expect(w.settled(ctx, general, v1.StateOpen).Decision.Source).To(Equal(v1.SourceSubscriptionPolicy))
		change(ctx, general, func(c *v1.Channel) { c.Spec.Admission = v1.StateClosed })
		Consistently(ctx, func() bool { return c.IsOpen(id) }).WithTimeout(settling / 4).Should(BeTrue()) // withdrawing closes nothing
	})

	It("admission Closed keeps out the connector's wish and the subscription", func(ctx SpecContext) {
		change(ctx, general, func(c *v1.Channel) { c.Spec.Admission = v1.StateClosed })
		change(ctx, discord, auto)
		w.settled(ctx, w.found(ctx, "discord:111:c2"), v1.StateOpen)
		_, err := c.Add(ctx, connector.AsNotification, connector.NewDescriptor(id).Initially(true))
		Expect(err).NotTo(HaveOccurred())
		Expect(c.WaitCount(ctx, "channels/close", id, 2)).To(Succeed())
		Expect(w.record(ctx, "discord", id)).To(BeNil())
	})

	It("a suspended Channel takes decisions and sends nothing until it is resumed", func(ctx SpecContext) {
		change(ctx, general, func(c *v1.Channel) { c.Spec.Suspend = true })
		saying(ctx, general, v1.ConditionSettled, "Unknown/Suspended")
		c.Reset()
		d := w.decision(ctx, "", "general", v1.DecisionOpen)
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
			g.Expect(condition(d.Status.Conditions, v1.ConditionComplete)).To(Equal("Unknown/Suspended"))
			g.Expect(condition(d.Status.Conditions, v1.ConditionRecorded)).To(Equal("True/Appended"))
		}).Should(Succeed())
		Expect(c.Count("", id)).To(BeZero())
		change(ctx, general, func(c *v1.Channel) { c.Spec.Suspend = false })
		Expect(w.answered(ctx, d).Result).To(Equal(v1.ResultOpened))
		w.settled(ctx, general, v1.StateOpen)
	})

	It("a suspended Connector is disconnected, decisions are recorded, and resuming applies them", func(ctx SpecContext) {
		change(ctx, discord, func(c *v1.Connector) { c.Spec.Suspend = true })
		w.says(ctx, discord, v1.ConditionConnected, "False/Suspended")
		Expect(discord.Status.State).To(Equal(v1.ConnectorGone))
		answer := open(ctx)
		Expect(answer.Result).To(Equal(v1.ResultFailed))
		Expect(answer.Cause).To(Equal(v1.CauseConnectorMissing))
		saying(ctx, general, v1.ConditionSettled, "Unknown/Suspended")
		change(ctx, discord, func(c *v1.Connector) { c.Spec.Suspend = false })
		w.settled(ctx, general, v1.StateOpen)
	})

	It("reconcile-at sends the decided operation again, once", func(ctx SpecContext) {
		c.Reset()
		change(ctx, general, func(c *v1.Channel) { c.Annotations = map[string]string{v1.ReconcileAtAnnotation: "now"} })
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(general), general)).To(Succeed())
			g.Expect(general.Status.LastHandledReconcileAt).To(Equal("now"))
		}).Should(Succeed())
		Expect(c.Count("channels/close", id)).To(Equal(1))
	})

	It("deletionPolicy Close closes the channel, and then the object goes", func(ctx SpecContext) {
		open(ctx)
		change(ctx, general, func(c *v1.Channel) { c.Spec.DeletionPolicy = v1.DeletionClose })
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(general), general)).To(Succeed())
			g.Expect(general.Finalizers).To(ConsistOf(v1.CloseFinalizer))
		}).Should(Succeed())
		Expect(k8s.Delete(ctx, general)).To(Succeed())
		Eventually(ctx, func() bool {
			return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(general), general))
		}).Should(BeTrue())
		Expect(c.IsOpen(id)).To(BeFalse())
		Expect(w.record(ctx, "discord", id).Record.Source).To(Equal(v1.SourceHousekeeping))
	})

	It("a held Channel that closes on deletion is not opened on its way out", func(ctx SpecContext) {
		open(ctx)
		change(ctx, general, func(c *v1.Channel) { c.Spec.DeletionPolicy, c.Spec.Hold = v1.DeletionClose, held })
		saying(ctx, general, v1.ConditionSettled, "True/Closed")
		Eventually(ctx, func() []string {
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(general), general)).To(Succeed())
			return general.Finalizers
		}).ShouldNot(BeEmpty())
		c.Reset()
		Expect(k8s.Delete(ctx, general)).To(Succeed())
		Eventually(ctx, func() bool {
			return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(general), general))
		}).Should(BeTrue())
		w.settled(ctx, w.found(ctx, id), v1.StateClosed)
		Expect(c.Count("channels/open", id)).To(BeZero())
	})

	It("a decision on a suspended Channel whose connector is away is answered once both are back", func(ctx SpecContext) {
		change(ctx, general, func(c *v1.Channel) { c.Spec.Suspend = true })
		change(ctx, discord, func(c *v1.Connector) { c.Spec.Suspend = true })
		w.says(ctx, discord, v1.ConditionConnected, "False/Suspended")
		d := w.decision(ctx, "", "general", v1.DecisionOpen)
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
			g.Expect(condition(d.Status.Conditions, v1.ConditionComplete)).To(Equal("Unknown/Suspended"))
		}).Should(Succeed())
		change(ctx, discord, func(c *v1.Connector) { c.Spec.Suspend = false })
		w.says(ctx, discord, v1.ConditionConnected, "True/Up")
		saying(ctx, general, v1.ConditionRegistered, "True/Declared")
		change(ctx, general, func(c *v1.Channel) { c.Spec.Suspend = false })
		Expect(w.answered(ctx, d).Result).To(Equal(v1.ResultOpened))
	})

	It("P23 under Retain a deletion closes nothing", func(ctx SpecContext) {
		open(ctx)
		c.Reset()
		Expect(k8s.Delete(ctx, general)).To(Succeed())
		found := w.found(ctx, id)
		w.settled(ctx, found, v1.StateOpen)
		Expect(c.Count("", id)).To(BeZero())
	})

	It("a decision whose channel does not appear in time fails with NotFound", func(ctx SpecContext) {
		d := w.decision(ctx, "", "nowhere", v1.DecisionOpen, func(d *v1.ChannelDecision) { d.Spec.DeadlineSeconds = ptr.To(int32(1)) })
		answer := w.answered(ctx, d)
		Expect(answer.Result).To(Equal(v1.ResultFailed))
		Expect(answer.Cause).To(Equal(v1.CauseNotFound))
	})
})
