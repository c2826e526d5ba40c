package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/test/connector"
)

var _ = Describe("A Channel", func() {
	It("B01 opens on a live connector when its resident says so, and A01 starts closed", func(ctx SpecContext) {
		w := newWorld(ctx)
		c := w.connector(ctx, "discord", connector.Options{Channels: connector.Generate("discord:111", 3)})
		w.declare(ctx, "discord")
		general := w.channel(ctx, "general", "discord", "discord:111:c1")
		w.start()

		status := w.settled(ctx, general, v1.StateClosed)
		Expect(status.Decision.Source).To(Equal(v1.SourceDefaultClosed))
		Expect(status.Decision.Revision).To(BeZero())
		Expect(c.Count("channels/close", "discord:111:c1")).To(Equal(1))
		Expect(c.Count("channels/open", "")).To(BeZero())

		answer := w.answered(ctx, w.decision(ctx, "open-it", "general", v1.DecisionOpen))
		Expect(answer.Result).To(Equal(v1.ResultOpened))
		Expect(answer.Revision).To(Equal(int64(1)))
		Expect(condition(answer.Conditions, v1.ConditionRecorded)).To(Equal("True/Appended"))
		Expect(condition(answer.Conditions, v1.ConditionComplete)).To(Equal("True/Opened"))

		status = w.settled(ctx, general, v1.StateOpen)
		Expect(status.Transport).To(Equal(v1.TransportOpen))
		Expect(status.Decision.DecidedBy).To(Equal("scout"))
		Expect(status.Label).To(Equal("#c1"))
		Expect(c.Count("channels/open", "discord:111:c1")).To(Equal(1))

		var all v1.ChannelList
		Expect(k8s.List(ctx, &all, client.InNamespace(w.namespace))).To(Succeed())
		Expect(all.Items).To(HaveLen(3), "one for each channel of the connector")
	})
})
