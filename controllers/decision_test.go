package controllers

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/pair"
	"mcpl.dev/operator/test/connector"
)

// by makes a decision somebody's other than the resident's.
func by(source v1.Source) func(*v1.ChannelDecision) {
	return func(d *v1.ChannelDecision) { d.Spec.Source, d.Spec.DecidedBy = source, "somebody" }
}

func leased(d *v1.ChannelDecision) { d.Spec.Lease = v1.LeaseClaimed }

// record reads a channel's ChannelRecord, nil where there is none.
func (w *world) record(ctx context.Context, serverID, channelID string) *v1.ChannelRecord {
	GinkgoHelper()
	var list v1.ChannelRecordList
	Expect(k8s.List(ctx, &list, client.InNamespace(w.namespace))).To(Succeed())
	for i := range list.Items {
		if r := &list.Items[i]; r.ServerID == serverID && r.ChannelID == channelID {
			Expect(r.Name).To(Equal(pair.Key{Namespace: w.namespace, ServerID: serverID, ChannelID: channelID}.RecordName()))
			return r
		}
	}
	return nil
}

var _ = Describe("A ChannelDecision", func() {
	const id = "discord:111:c1"
	var (
		w       *world
		c       *connector.Connector
		general *v1.Channel
	)
	BeforeEach(func(ctx SpecContext) {
		w = newWorld(ctx)
		c = w.connector(ctx, "discord", connector.Options{Channels: connector.Generate("discord:111", 2)})
		general = w.channel(ctx, "general", "discord", id)
	})
	live := func(ctx SpecContext, edit ...func(*v1.Connector)) {
		GinkgoHelper()
		w.declare(ctx, "discord", edit...)
		w.start()
		w.settled(ctx, general, v1.StateClosed)
		c.Reset()
	}

	It("B09 closes what is closed by default without a word on the wire, and is on record", func(ctx SpecContext) {
		live(ctx)
		answer := w.answered(ctx, w.decision(ctx, "close-it", "general", v1.DecisionClose))
		Expect(answer.Result).To(Equal(v1.ResultAlreadyClosed))
		Expect(w.record(ctx, "discord", id).Record.Source).To(Equal(v1.SourceAgentTool))
		Expect(c.Count("", id)).To(BeZero())
	})

	It("B02 makes an open that somebody else decided its own, without a word on the wire", func(ctx SpecContext) {
		w.declare(ctx, "discord", func(c *v1.Connector) { c.Spec.Subscription.Mode = v1.SubscriptionAuto })
		w.start()
		w.settled(ctx, general, v1.StateOpen)
		c.Reset()
		answer := w.answered(ctx, w.decision(ctx, "open-it", "general", v1.DecisionOpen))
		Expect(answer.Result).To(Equal(v1.ResultAlreadyOpen))
		Expect(answer.Revision).To(Equal(int64(2)))
		Expect(condition(answer.Conditions, v1.ConditionRecorded)).To(Equal("True/Appended"))
		Expect(c.Count("", id)).To(BeZero())
	})

	It("B04 fails with what stands and what comes next when the connector does, and stays decided", func(ctx SpecContext) {
		live(ctx)
		c.Once(connector.On("channels/open", id).Failing(-32603, "relay refused"))
		answer := w.answered(ctx, w.decision(ctx, "open-it", "general", v1.DecisionOpen))
		Expect(answer.Result).To(Equal(v1.ResultFailed))
		Expect(answer.Cause).To(Equal(v1.CauseStaysSelected))
		Expect(answer.Message).To(ContainSubstring("relay refused"))
		Expect(answer.Message).To(ContainSubstring("a close withdraws it"))
		Expect(condition(answer.Conditions, v1.ConditionReady)).To(Equal("False/StaysSelected"))
		Expect(w.record(ctx, "discord", id).Record.State).To(Equal(v1.StateOpen))
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(general), general)).To(Succeed())
			g.Expect(condition(general.Status.Conditions, v1.ConditionSettled)).To(Equal("False/OpenFailed"))
		}).Should(Succeed())

		By("B03 asking again opens it")
		answer = w.answered(ctx, w.decision(ctx, "open-it-again", "general", v1.DecisionOpen))
		Expect(answer.Result).To(Equal(v1.ResultReconciled))
		Expect(condition(answer.Conditions, v1.ConditionRecorded)).To(Equal("True/Unchanged"))
		w.settled(ctx, general, v1.StateOpen)
	})

	It("B11 a close that fails stays decided, and the channel says so", func(ctx SpecContext) {
		live(ctx)
		w.answered(ctx, w.decision(ctx, "open-it", "general", v1.DecisionOpen))
		c.Once(connector.On("channels/close", id).Failing(-32603, "platform is away"))
		answer := w.answered(ctx, w.decision(ctx, "close-it", "general", v1.DecisionClose))
		Expect(answer.Result).To(Equal(v1.ResultFailed))
		Expect(answer.Cause).To(Equal(v1.CauseConnectorFailed))
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(general), general)).To(Succeed())
			g.Expect(condition(general.Status.Conditions, v1.ConditionSettled)).To(Equal("False/CloseFailed"))
			g.Expect(general.Status.Transport).To(Equal(v1.TransportOpen))
			g.Expect(general.Status.Desired).To(Equal("Closed"))
		}).Should(Succeed())
	})

	It("B13 and B14 are recorded where the host may not open or close", func(ctx SpecContext) {
		w.declare(ctx, "discord", func(c *v1.Connector) {
			c.Spec.Grant = &v1.ConnectorGrant{Deny: []string{"channels.lifecycle"}}
		})
		w.start()
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(general), general)).To(Succeed())
			g.Expect(condition(general.Status.Conditions, v1.ConditionSettled)).To(Equal("False/NotPermitted"))
		}).Should(Succeed())
		Expect(w.record(ctx, "discord", id)).To(BeNil(), "A12: nothing is decided where the host does not direct")
		for _, kind := range []v1.DecisionKind{v1.DecisionOpen, v1.DecisionClose} {
			answer := w.answered(ctx, w.decision(ctx, "", "general", kind))
			Expect(answer.Result).To(Equal(v1.ResultFailed))
			Expect(answer.Cause).To(Equal(v1.CauseNotPermitted))
			Expect(condition(answer.Conditions, v1.ConditionRecorded)).To(Equal("True/Appended"))
		}
		Expect(w.record(ctx, "discord", id).Revision).To(Equal(int64(2)))
		Expect(c.Count("channels/open", "") + c.Count("channels/close", "")).To(BeZero())
	})

	It("C01, C02 and C14 machines stand down before an explicit open, unless they claim a lease", func(ctx SpecContext) {
		live(ctx)
		w.answered(ctx, w.decision(ctx, "open-it", "general", v1.DecisionOpen))
		c.Reset()
		refused := w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionClose, by(v1.SourceSubscriptionGC)))
		Expect(refused.Result).To(Equal(v1.ResultRefused))
		Expect(refused.Cause).To(Equal(v1.CauseExplicitOpen))
		Expect(condition(refused.Conditions, v1.ConditionRecorded)).To(Equal("False/Refused"))
		Expect(w.record(ctx, "discord", id).Revision).To(Equal(int64(1)))
		Expect(c.Count("", id)).To(BeZero())

		closed := w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionClose, by(v1.SourceSubscriptionGC), leased))
		Expect(closed.Result).To(Equal(v1.ResultClosed))
		Expect(w.record(ctx, "discord", id).Record.Source).To(Equal(v1.SourceSubscriptionGC))
		Expect(c.Count("channels/close", id)).To(Equal(1))

		w.answered(ctx, w.decision(ctx, "open-it-again", "general", v1.DecisionOpen))
		module := w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionClose, by(v1.SourceModuleTool)))
		Expect(module.Result).To(Equal(v1.ResultClosed))
		Expect(w.record(ctx, "discord", id).Record.Source).To(Equal(v1.SourceModuleTool))
	})

	It("C10 and C11 deliberate closes are written over each other, a machine's never", func(ctx SpecContext) {
		live(ctx)
		for _, step := range []struct {
			source   v1.Source
			revision int64
			stands   v1.Source
		}{
			{v1.SourceAgentTool, 1, v1.SourceAgentTool},
			{v1.SourceModuleTool, 2, v1.SourceModuleTool},
			{v1.SourceAgentTool, 3, v1.SourceAgentTool},
			{v1.SourceAgentTool, 3, v1.SourceAgentTool},
			{v1.SourceHousekeeping, 3, v1.SourceAgentTool},
		} {
			edit := func(d *v1.ChannelDecision) { d.Spec.Source = step.source }
			if step.source != v1.SourceAgentTool {
				edit = by(step.source)
			}
			answer := w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionClose, edit))
			Expect(answer.Result).To(Equal(v1.ResultAlreadyClosed))
			record := w.record(ctx, "discord", id)
			Expect(record.Revision).To(Equal(step.revision))
			Expect(record.Record.Source).To(Equal(step.stands))
		}
		Expect(c.Count("", id)).To(BeZero())
	})

	It("is refused where the channel is another resident's", func(ctx SpecContext) {
		live(ctx)
		for _, kind := range []v1.DecisionKind{v1.DecisionOpen, v1.DecisionClose} {
			answer := w.answered(ctx, w.decision(ctx, "", "general", kind, func(d *v1.ChannelDecision) { d.Spec.DecidedBy = "rover" }))
			Expect(answer.Result).To(Equal(v1.ResultRefused))
			Expect(answer.Cause).To(Equal(v1.CauseNotItsResident))
		}
		Expect(w.record(ctx, "discord", id)).To(BeNil())
	})

	It("B08 open in flight, then a close: ends closed, and the open is Superseded", func(ctx SpecContext) {
		live(ctx)
		c.Once(connector.On("channels/open", id).HeldAt("open"))
		open := w.decision(ctx, "open-it", "general", v1.DecisionOpen)
		Expect(c.WaitHeld(ctx, "open", 1)).To(Succeed())
		closing := w.decision(ctx, "close-it", "general", v1.DecisionClose)
		Eventually(ctx, func(g Gomega) {
			g.Expect(w.record(ctx, "discord", id).Revision).To(Equal(int64(2)), "the close is recorded while the open is out")
		}).Should(Succeed())
		c.Release("open")
		Expect(w.answered(ctx, open).Result).To(Equal(v1.ResultSuperseded))
		Expect(w.answered(ctx, closing).Result).To(Equal(v1.ResultClosed))
		w.settled(ctx, general, v1.StateClosed)
	})

	It("those that wait are taken in the order in which they were made", func(ctx SpecContext) {
		var all []*v1.ChannelDecision
		for i := range 6 {
			kind := v1.DecisionOpen
			if i%2 == 1 {
				kind = v1.DecisionClose
			}
			// Names sort the other way round, and all are made within one second.
			all = append(all, w.decision(ctx, fmt.Sprintf("d%d", 9-i), "general", kind))
		}
		w.declare(ctx, "discord")
		w.start()
		for i, d := range all {
			Expect(w.answered(ctx, d).Revision).To(Equal(int64(i + 1)))
		}
		Expect(w.record(ctx, "discord", id).Record.State).To(Equal(v1.StateClosed))
	})

	It("under a name that the record knows decides nothing, however often it is applied", func(ctx SpecContext) {
		live(ctx)
		w.answered(ctx, w.decision(ctx, "open-it", "general", v1.DecisionOpen))
		w.answered(ctx, w.decision(ctx, "close-it", "general", v1.DecisionClose))
		before := w.record(ctx, "discord", id)
		c.Reset()
		for _, d := range []struct {
			name   string
			kind   v1.DecisionKind
			result v1.Result
		}{{"open-it", v1.DecisionOpen, v1.ResultSuperseded}, {"close-it", v1.DecisionClose, v1.ResultClosed}} {
			old := &v1.ChannelDecision{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: d.name}}
			Expect(k8s.Delete(ctx, old)).To(Succeed())
			Expect(w.answered(ctx, w.decision(ctx, d.name, "general", d.kind)).Result).To(Equal(d.result))
		}
		Expect(w.record(ctx, "discord", id).ResourceVersion).To(Equal(before.ResourceVersion))
		Expect(c.Count("", id)).To(BeZero())
	})

	It("brings history where it asks for it, and says only how much", func(ctx SpecContext) {
		live(ctx)
		c.Once(connector.On("channels/open", id).Answering(map[string]any{
			"channel": connector.NewDescriptor(id),
			"history": []map[string]any{{"channelId": id, "messageId": "m1"}, {"channelId": id, "messageId": "m2"}}, "historyTruncated": true,
		}))
		answer := w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionOpen, func(d *v1.ChannelDecision) {
			d.Spec.History = &v1.HistoryRequest{Limit: 2}
		}))
		Expect(answer.Result).To(Equal(v1.ResultOpened))
		Expect(answer.History).To(Equal(&v1.HistoryResult{Count: 2, Truncated: true}))
		Expect(string(c.Requests("channels/open", id)[0].Params)).To(ContainSubstring(`"limit":2`))
	})

	It("waits for a Channel that does not exist yet", func(ctx SpecContext) {
		live(ctx)
		d := w.decision(ctx, "open-later", "later", v1.DecisionOpen)
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
			g.Expect(condition(d.Status.Conditions, v1.ConditionComplete)).To(Equal("Unknown/Waiting"))
			g.Expect(d.Status.SeenAt).NotTo(BeEmpty())
		}).Should(Succeed())
		w.channel(ctx, "later", "discord", "discord:111:c2")
		Expect(w.answered(ctx, d).Result).To(Equal(v1.ResultOpened))
	})

	It("that a restart interrupts is answered from what the connector confirms afterwards", func(ctx SpecContext) {
		live(ctx)
		c.Once(connector.On("channels/open", id).HeldAt("open"))
		d := w.decision(ctx, "open-it", "general", v1.DecisionOpen)
		Expect(c.WaitHeld(ctx, "open", 1)).To(Succeed())
		w.stop()
		c.Release("open")
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
		Expect(d.Status.CompletedAt).To(BeNil())
		w.start()
		Expect(w.answered(ctx, d).Result).To(Equal(v1.ResultOpened))
		Expect(w.record(ctx, "discord", id).Revision).To(Equal(int64(1)), "it is not decided twice")
		w.settled(ctx, general, v1.StateOpen)
	})

	It("with a generated name goes after its time, one with a name of its own stays", func(ctx SpecContext) {
		live(ctx)
		var generated []*v1.ChannelDecision
		for i := range 3 {
			kind := v1.DecisionOpen
			if i%2 == 1 {
				kind = v1.DecisionClose
			}
			d := w.decision(ctx, "", "general", kind, func(d *v1.ChannelDecision) { d.Spec.TTLSecondsAfterFinished = new(int32) })
			w.answered(ctx, d)
			generated = append(generated, d)
		}
		named := w.decision(ctx, "stays", "general", v1.DecisionClose, func(d *v1.ChannelDecision) { d.Spec.TTLSecondsAfterFinished = new(int32) })
		w.answered(ctx, named)
		// Their time is over six minutes after they were answered: those of a past are answered then.
		for _, d := range append(generated, named) {
			past := metav1.NewTime(time.Now().Add(-6 * time.Minute))
			d.Status.CompletedAt = &past
			Expect(k8s.Status().Update(ctx, d)).To(Succeed())
		}
		Eventually(ctx, func(g Gomega) {
			var left v1.ChannelDecisionList
			g.Expect(k8s.List(ctx, &left, client.InNamespace(w.namespace))).To(Succeed())
			g.Expect(left.Items).To(HaveLen(1))
			g.Expect(left.Items[0].Name).To(Equal("stays"))
		}).Should(Succeed())
		Expect(w.record(ctx, "discord", id).Revision).To(Equal(int64(4)), "what was decided stands")
	})

	It("is taken whatever the order in which everything was applied", func(ctx SpecContext) {
		w.start()
		things := []func(string){
			func(n string) {
				Expect(k8s.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: n}})).To(Succeed())
			},
			func(n string) {
				w.declare(ctx, n, func(c *v1.Connector) { c.Spec.PodSelector.MatchLabels = map[string]string{"app": n} })
			},
			func(n string) { w.channel(ctx, n+"-general", n, id) },
			func(n string) { w.decision(ctx, n+"-open", n+"-general", v1.DecisionOpen) },
			func(n string) { w.pod(ctx, n, w.another(ctx)) },
		}
		for i, order := range permutations(len(things)) {
			n := fmt.Sprintf("p%d", i)
			for _, k := range order {
				things[k](n)
			}
		}
		for i := range permutations(len(things)) {
			n := fmt.Sprintf("p%d", i)
			w.settled(ctx, &v1.Channel{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: n + "-general"}}, v1.StateOpen)
			Expect(w.record(ctx, n, id).Revision).To(Equal(int64(1)))
		}
	})
})
