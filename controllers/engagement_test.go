package controllers

import (
	"context"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/pair"
	"mcpl.dev/operator/test/connector"
)

const (
	speech = v1.SourceOpenedByDelivery
	reply  = v1.SourceOpenedByReply
)

// ended waits for an engagement's end.
func ended(ctx context.Context, end <-chan decision.Engagement) decision.Engagement {
	GinkgoHelper()
	var e decision.Engagement
	Eventually(ctx, end).Should(Receive(&e))
	return e
}

// imported writes a record of the channel c1 that no decision can make.
func (w *world) imported(ctx context.Context, state v1.State, source v1.Source) {
	GinkgoHelper()
	const id = "discord:111:c1"
	key := pair.Key{Namespace: w.namespace, ServerID: "discord", ChannelID: id}
	Expect(k8s.Create(ctx, &v1.ChannelRecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: key.RecordName()},
		ServerID:   "discord", ChannelID: id, Revision: 1,
		Record: v1.Record{ID: "imported", State: state, Source: source, At: metav1.Now()},
	})).To(Succeed())
}

var _ = Describe("Words into a channel", func() {
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
		discord = w.declare(ctx, "discord")
	})
	live := func(ctx SpecContext, state v1.State) {
		GinkgoHelper()
		w.start()
		w.settled(ctx, general, state)
		c.Reset()
	}
	engage := func(source v1.Source) <-chan decision.Engagement {
		return w.channels.Engage(pair.Key{Namespace: w.namespace, ServerID: "discord", ChannelID: id}, source)
	}
	failing := func() { c.Once(connector.On("channels/open", id).Failing(-32603, "relay refused")) }
	record := func(ctx SpecContext) v1.Record {
		GinkgoHelper()
		return w.record(ctx, "discord", id).Record
	}
	// wire is what was asked of the connector about the channel, in order.
	wire := func() string {
		var methods []string
		for _, e := range c.Entries(connector.Filter{Direction: connector.In, Kind: connector.Request, ChannelID: id}) {
			methods = append(methods, strings.TrimPrefix(e.Method, "channels/"))
		}
		return strings.Join(methods, " ")
	}

	It("D01 open one that nobody decided, as theirs", func(ctx SpecContext) {
		live(ctx, v1.StateClosed)
		e := ended(ctx, engage(speech))
		Expect(e).To(Equal(decision.Engagement{Opening: true, Opened: true, Directed: true}))
		Expect(record(ctx).Source).To(Equal(speech))
		w.settled(ctx, general, v1.StateOpen)
	})

	It("D13 two at once share one open and one notice", func(ctx SpecContext) {
		live(ctx, v1.StateClosed)
		first, second := engage(speech), engage(speech)
		a, b := ended(ctx, first), ended(ctx, second)
		Expect([]bool{a.Opened, b.Opened}).To(ConsistOf(true, false))
		Expect(a.Failure + b.Failure).To(BeEmpty())
		Expect(wire()).To(Equal("open"))
	})

	DescribeTable("leave closed what was closed on purpose (D03, D04, D05)", func(ctx SpecContext, edit func(*v1.ChannelDecision)) {
		live(ctx, v1.StateClosed)
		w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionClose, edit))
		c.Reset()
		Expect(ended(ctx, engage(speech))).To(Equal(decision.Engagement{Directed: true}))
		Expect(ended(ctx, engage(reply))).To(Equal(decision.Engagement{Directed: true}))
		Expect(w.record(ctx, "discord", id).Revision).To(Equal(int64(1)))
		Expect(wire()).To(BeEmpty())
	},
		Entry("by the resident", func(*v1.ChannelDecision) {}),
		Entry("by a decline", declines),
		Entry("by a module", by(v1.SourceModuleTool)),
	)

	DescribeTable("open what a machine closed, or an import (D06, D07)", func(ctx SpecContext, source v1.Source) {
		w.imported(ctx, v1.StateClosed, source)
		live(ctx, v1.StateClosed)
		Expect(ended(ctx, engage(speech)).Opened).To(BeTrue())
	},
		Entry("SubscriptionGC", v1.SourceSubscriptionGC), Entry("Housekeeping", v1.SourceHousekeeping),
		Entry("LegacyRecipeMigration", v1.SourceLegacyRecipeMigration), Entry("Unknown", v1.SourceUnknown),
	)

	It("E01 whose open fails put back that nobody decided, and correct the wire", func(ctx SpecContext) {
		live(ctx, v1.StateClosed)
		failing()
		e := ended(ctx, engage(speech))
		Expect(e).To(Equal(decision.Engagement{Opening: true, Failure: v1.CauseConnectorFailed, Directed: true}))
		Expect(record(ctx).Source).To(Equal(v1.SourceDefaultClosed))
		w.settled(ctx, general, v1.StateClosed)
		Expect(wire()).To(Equal("open close"))
	})

	It("E03 whose open fails put back a machine's close", func(ctx SpecContext) {
		w.imported(ctx, v1.StateClosed, v1.SourceSubscriptionGC)
		live(ctx, v1.StateClosed)
		failing()
		Expect(ended(ctx, engage(reply)).Failure).To(Equal(v1.CauseConnectorFailed))
		Expect(record(ctx)).To(And(HaveField("State", v1.StateClosed), HaveField("Source", v1.SourceSubscriptionGC)))
	})

	DescribeTable("E04 and E05 put nothing back over a decision that came meanwhile", func(ctx SpecContext, kind v1.DecisionKind) {
		live(ctx, v1.StateClosed)
		c.Once(connector.On("channels/open", id).HeldAt("open").Failing(-32603, "no"))
		end := engage(speech)
		Expect(c.WaitHeld(ctx, "open", 1)).To(Succeed())
		d := w.decision(ctx, "", "general", kind)
		Eventually(ctx, func() int64 { return w.record(ctx, "discord", id).Revision }).Should(Equal(int64(2)))
		c.Release("open")
		Expect(ended(ctx, end).Failure).To(Equal(v1.CauseOvertaken))
		w.answered(ctx, d)
		Expect(record(ctx).Source).To(Equal(v1.SourceAgentTool))
		Expect(w.record(ctx, "discord", id).Revision).To(Equal(int64(2)))
	}, Entry("a close", v1.DecisionClose), Entry("an open", v1.DecisionOpen))

	DescribeTable("E06, E07 and E08 are selected again by what was said meanwhile, unless somebody had decided",
		func(ctx SpecContext, before v1.Source, announce func(context.Context), want v1.Source, selected decision.Selection) {
			if before != "" {
				w.imported(ctx, v1.StateClosed, before)
			}
			live(ctx, v1.StateClosed)
			c.Once(connector.On("channels/open", id).HeldAt("open").Failing(-32603, "no"))
			end := engage(speech)
			Expect(c.WaitHeld(ctx, "open", 1)).To(Succeed())
			announce(ctx)
			Eventually(ctx, func() bool {
				live := w.channels.sessions.Channel(pair.Key{Namespace: w.namespace, ServerID: "discord", ChannelID: id})
				return live.Descriptor.InitiallyOpen || discord.Spec.Subscription.Mode == v1.SubscriptionAuto
			}).Should(BeTrue())
			c.Release("open")
			e := ended(ctx, end)
			Expect(e.Selected).To(Equal(selected))
			Eventually(ctx, func() v1.Source { return record(ctx).Source }).Should(Equal(want))
		},
		Entry("the connector's wish, nobody decided", v1.Source(""), func(ctx context.Context) {
			_, err := c.Update(ctx, connector.AsNotification, connector.NewDescriptor(id).Initially(true))
			Expect(err).NotTo(HaveOccurred())
		}, v1.SourceServerBootstrap, decision.SelectedByConnector),
		Entry("the policy, nobody decided", v1.Source(""), func(ctx context.Context) {
			change(ctx, discord, auto)
			Eventually(ctx, func(g Gomega) {
				var seen v1.Connector
				g.Expect(w.channels.cache.Get(ctx, client.ObjectKeyFromObject(discord), &seen)).To(Succeed())
				g.Expect(seen.Spec.Subscription.Mode).To(Equal(v1.SubscriptionAuto))
			}).Should(Succeed())
		}, v1.SourceSubscriptionPolicy, decision.SelectedByPolicy),
		Entry("the connector's wish, a machine had closed", v1.SourceHousekeeping, func(ctx context.Context) {
			_, err := c.Update(ctx, connector.AsNotification, connector.NewDescriptor(id).Initially(true))
			Expect(err).NotTo(HaveOccurred())
		}, v1.SourceHousekeeping, decision.Selection("")),
	)

	It("E09 whose put-back can't be stored stay decided open, and no close is sent", func(ctx SpecContext) {
		live(ctx, v1.StateClosed)
		c.Once(connector.On("channels/open", id).HeldAt("open").Failing(-32603, "no"))
		end := engage(speech)
		Expect(c.WaitHeld(ctx, "open", 1)).To(Succeed())
		w.faults.set(func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/channelrecords/")
		})
		c.Release("open")
		e := ended(ctx, end)
		w.faults.set(nil)
		Expect(e.Failure).To(Equal(v1.CauseStaysSelected))
		Expect(e.Selected).To(Equal(decision.Unrecorded))
		Expect(record(ctx).State).To(Equal(v1.StateOpen))
		Expect(wire()).To(Equal("open"))
	})

	It("E02 a reply to one that only a message named puts back that nobody decided", func(ctx SpecContext) {
		w.start()
		w.settled(ctx, general, v1.StateClosed)
		const thread = "discord:111:thread"
		_, err := c.PushEvent(ctx, connector.Push{FeatureSet: "discord.messaging", EventID: "e1", Origin: map[string]any{"mcplChannelId": thread}})
		Expect(err).NotTo(HaveOccurred())
		key := pair.Key{Namespace: w.namespace, ServerID: "discord", ChannelID: thread}
		Eventually(ctx, func() bool { return w.channels.sessions.Channel(key).PushKnown }).Should(BeTrue())
		c.Once(connector.On("channels/open", thread).Failing(-32603, "unknown channel"))
		Expect(ended(ctx, w.channels.Engage(key, reply)).Failure).To(Equal(v1.CauseConnectorFailed))
		Expect(w.record(ctx, "discord", thread).Record.Source).To(Equal(v1.SourceDefaultClosed))
	})

	It("E10 whose lift can't be stored stay closed by default, and only the open's failure is reported", func(ctx SpecContext) {
		live(ctx, v1.StateClosed)
		c.Once(connector.On("channels/open", id).HeldAt("open").Failing(-32603, "no"))
		end := engage(speech)
		Expect(c.WaitHeld(ctx, "open", 1)).To(Succeed())
		_, err := c.Update(ctx, connector.AsNotification, connector.NewDescriptor(id).Initially(true))
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() bool {
			return w.channels.sessions.Channel(pair.Key{Namespace: w.namespace, ServerID: "discord", ChannelID: id}).Descriptor.InitiallyOpen
		}).Should(BeTrue())
		puts := 0
		w.faults.set(func(r *http.Request) bool { // the put-back goes through, the lift after it does not
			if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/channelrecords/") {
				return false
			}
			puts++
			return puts > 1
		})
		c.Release("open")
		e := ended(ctx, end)
		w.faults.set(nil)
		Expect(e).To(Equal(decision.Engagement{Opening: true, Failure: v1.CauseConnectorFailed, Directed: true}))
		Expect(record(ctx).Source).To(Equal(v1.SourceDefaultClosed))
	})

	It("E12 whose reconfirmation fails leave a tune-out alone", func(ctx SpecContext) {
		key := pair.Key{Namespace: w.namespace, ServerID: "discord", ChannelID: id}
		Expect(k8s.Create(ctx, &v1.ChannelRecord{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: key.RecordName()},
			ServerID:   "discord", ChannelID: id, Revision: 1,
			Record:  v1.Record{ID: "tuned", State: v1.StateTunedOut, Source: v1.SourceAgentTool, At: metav1.Now()},
			TuneOut: &v1.TuneOutEpoch{EpochID: "e", StartedAt: metav1.Now(), Parameters: v1.TuneOutParameters{CadenceSeconds: 1800, BacklogCap: 200, MaxWakes: 5}},
		})).To(Succeed())
		c.Once(connector.On("channels/open", id).Failing(-32603, "no"), connector.On("channels/open", id).Failing(-32603, "no"))
		w.start()
		saying(ctx, general, v1.ConditionSettled, "False/OpenFailed")
		Expect(ended(ctx, engage(reply))).To(Equal(decision.Engagement{Failure: v1.CauseConnectorFailed, Directed: true}))
		Expect(record(ctx).State).To(Equal(v1.StateTunedOut))
		By("D10 the next words open it, and the epoch goes on")
		Expect(ended(ctx, engage(speech)).Failure).To(BeEmpty())
		Expect(w.settled(ctx, general, v1.StateTunedOut).Transport).To(Equal(v1.TransportOpen))
		By("B05 and C04 opens and machines' closes are refused meanwhile")
		Expect(w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionOpen)).Cause).To(Equal(v1.CauseTunedOut))
		Expect(w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionClose, by(v1.SourceSubscriptionGC))).Cause).To(Equal(v1.CauseExplicitOpen))
		Expect(w.record(ctx, "discord", id).Revision).To(Equal(int64(1)))
	})

	It("I10 that can't be recorded send nothing", func(ctx SpecContext) {
		live(ctx, v1.StateClosed)
		w.faults.set(func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/channelrecords")
		})
		e := ended(ctx, engage(speech))
		w.faults.set(nil)
		Expect(e.Failure).To(Equal(v1.CauseStoreFailed))
		Expect(wire()).To(BeEmpty())
	})

	It("E11 and B04 that find it decided open and not confirmed open it again quietly, and put nothing back", func(ctx SpecContext) {
		live(ctx, v1.StateClosed)
		failing()
		w.answered(ctx, w.decision(ctx, "", "general", v1.DecisionOpen))
		failing()
		Expect(ended(ctx, engage(reply))).To(Equal(decision.Engagement{Failure: v1.CauseConnectorFailed, Directed: true}))
		Expect(record(ctx).State).To(Equal(v1.StateOpen))
		Expect(ended(ctx, engage(speech))).To(Equal(decision.Engagement{Directed: true}))
		w.settled(ctx, general, v1.StateOpen)
	})

	It("E13 and D12 where the host does not direct are recorded nowhere", func(ctx SpecContext) {
		change(ctx, discord, func(c *v1.Connector) { c.Spec.Grant = &v1.ConnectorGrant{Deny: []string{"channels.lifecycle"}} })
		w.start()
		saying(ctx, general, v1.ConditionSettled, "False/NotPermitted")
		Expect(ended(ctx, engage(reply))).To(Equal(decision.Engagement{}))
		Expect(w.record(ctx, "discord", id)).To(BeNil())
	})

	It("E14 two replies, the first's open fails: one notice, one corrective close", func(ctx SpecContext) {
		live(ctx, v1.StateClosed)
		c.Once(connector.On("channels/open", id).HeldAt("open").Failing(-32603, "no"))
		first := engage(reply)
		Expect(c.WaitHeld(ctx, "open", 1)).To(Succeed())
		second := engage(reply)
		Eventually(ctx, func() int {
			return w.channels.sessions.Channel(pair.Key{Namespace: w.namespace, ServerID: "discord", ChannelID: id}).Outstanding
		}).Should(Equal(2))
		c.Release("open")
		a, b := ended(ctx, first), ended(ctx, second)
		author := decision.Author{MayOpen: true, MayClose: true}
		Expect(append(decision.Notices(a, author, true), decision.Notices(b, author, true)...)).To(HaveLen(1))
		w.settled(ctx, general, v1.StateClosed)
		// The second's turn may come before the first's put-back is stored: then it opens once more.
		Expect(wire()).To(MatchRegexp(`^open( open)? close$`))
	})

	It("D14 that wait for work find it closed, and are no engagement", func(ctx SpecContext) {
		live(ctx, v1.StateClosed)
		c.Once(connector.On("channels/open", id).HeldAt("open"))
		open := w.decision(ctx, "", "general", v1.DecisionOpen)
		Expect(c.WaitHeld(ctx, "open", 1)).To(Succeed())
		end := engage(speech)
		closing := w.decision(ctx, "", "general", v1.DecisionClose)
		Eventually(ctx, func() int64 { return w.record(ctx, "discord", id).Revision }).Should(Equal(int64(2)))
		c.Release("open")
		Expect(ended(ctx, end)).To(Equal(decision.Engagement{Directed: true}))
		Expect(w.answered(ctx, open).Result).To(Equal(v1.ResultSuperseded))
		Expect(w.answered(ctx, closing).Result).To(Equal(v1.ResultClosed))
	})

	It("E15 and I03 a transport that drops meanwhile does not change who is told", func(ctx SpecContext) {
		live(ctx, v1.StateClosed)
		c.Once(connector.On("channels/open", id).Dropping().NotApplied())
		e := ended(ctx, engage(reply))
		Expect(e.Directed).To(BeTrue())
		Expect(decision.Notices(e, decision.Author{MayOpen: true}, false)).To(HaveLen(1))
		w.settled(ctx, general, v1.StateClosed)
	})
})
