package controllers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/coder/websocket"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/test/cluster"
	"mcpl.dev/operator/test/connector"
)

// says waits until a Connector's condition is "Status/Reason", and returns its message.
func (w *world) says(ctx context.Context, c *v1.Connector, kind, want string) string {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(c), c)).To(Succeed())
		g.Expect(condition(c.Status.Conditions, kind)).To(Equal(want))
		g.Expect(c.Status.ObservedGeneration).To(Equal(c.Generation))
	}).Should(Succeed())
	for _, found := range c.Status.Conditions {
		if found.Type == kind {
			return found.Message
		}
	}
	return ""
}

// token makes a Secret that the manager may read, and has a Connector use it.
func (w *world) token(ctx context.Context, value string) func(*v1.Connector) {
	GinkgoHelper()
	Expect(k8s.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "discord"}, StringData: map[string]string{"token": value}})).To(Succeed())
	for _, args := range [][]string{
		{"create", "role", "secrets", "--verb=get", "--resource=secrets", "--resource-name=discord"},
		{"create", "rolebinding", "secrets", "--role=secrets", "--user=" + cluster.ManagerUser},
	} {
		_, err := control.Kubectl(ctx, append([]string{"-n", w.namespace}, args...)...)
		Expect(err).NotTo(HaveOccurred())
	}
	return func(c *v1.Connector) {
		c.Spec.Transport.TokenSecretRef = &v1.SecretKeyReference{Name: "discord"}
	}
}

var _ = Describe("A Connector", func() {
	var w *world
	BeforeEach(func(ctx SpecContext) { w = newWorld(ctx) })

	It("is Up with a grant, says who answers, and counts its channels", func(ctx SpecContext) {
		w.connector(ctx, "discord", connector.Options{ServerName: "discord", Channels: connector.Generate("discord:111", 3), Fence: true})
		c := w.declare(ctx, "discord", func(c *v1.Connector) {
			c.Spec.Grant = &v1.ConnectorGrant{Deny: []string{"channels.typing"}}
			c.Spec.Subscription = v1.Subscription{Mode: v1.SubscriptionAllowList, Allow: []string{"discord:111:c1", "c2"}}
		})
		w.start()
		w.says(ctx, c, v1.ConditionConnected, "True/Up")
		w.says(ctx, c, v1.ConditionInsecure, "True/NotEncrypted")
		Expect(c.Status.Pod.Name).To(Equal("discord-0"))
		Expect(c.Status.ServerInfo.Name).To(Equal("discord-mcpl"))
		Expect(c.Status.EffectiveCapabilities).To(ContainElement("channels.lifecycle"))
		Expect(c.Status.EffectiveCapabilities).NotTo(ContainElement("channels.typing"))
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(c), c)).To(Succeed())
			g.Expect(c.Status.Channels).To(Equal(&v1.ChannelCounts{Registered: 3, Open: 2}), "A11: the allow-list has an id and a platform's id")
			g.Expect(c.Status.SessionGeneration).To(Equal(int64(1)))
		}).Should(Succeed())
		w.says(ctx, c, v1.ConditionNegotiated, "True/Degraded")
		Expect(c.Status.UnavailableFeatures).NotTo(BeEmpty())
	})

	It("says why no pod serves, and serves once one does", func(ctx SpecContext) {
		c := w.declare(ctx, "discord")
		w.start()
		w.says(ctx, c, v1.ConditionConnected, "False/NoReadyPod")
		first := w.connector(ctx, "discord", connector.Options{})
		w.says(ctx, c, v1.ConditionConnected, "True/Up")
		By("a second ready pod makes it ambiguous, but the one that serves goes on")
		second := w.another(ctx)
		_, err := control.WritePod(ctx, w.namespace, "discord-1", map[string]string{"app": "discord"}, second.Addr())
		Expect(err).NotTo(HaveOccurred())
		Expect(first.Close()).To(Succeed())
		w.says(ctx, c, v1.ConditionConnected, "False/AmbiguousPods")
		Expect(k8s.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "discord-0"}},
			client.GracePeriodSeconds(0))).To(Succeed())
		w.says(ctx, c, v1.ConditionConnected, "True/Up")
		Expect(c.Status.Pod.Name).To(Equal("discord-1"))
		Expect(c.Status.SessionGeneration).To(Equal(int64(2)))
	})

	DescribeTable("says what is wrong with its pod", func(ctx SpecContext, waiting, want string) {
		c := w.declare(ctx, "discord")
		pod, err := control.WritePod(ctx, w.namespace, "discord-0", map[string]string{"app": "discord"}, "127.0.0.1:1")
		Expect(err).NotTo(HaveOccurred())
		pod.Status.Conditions[0].Status = corev1.ConditionFalse
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "connector", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: waiting}}}}
		Expect(k8s.Status().Update(ctx, pod)).To(Succeed())
		w.start()
		w.says(ctx, c, v1.ConditionConnected, "False/"+want)
	},
		Entry("an image that can't be pulled", "ImagePullBackOff", v1.ReasonImagePullFailed),
		Entry("a crash loop", "CrashLoopBackOff", v1.ReasonCrashLooping),
		Entry("one that starts", "ContainerCreating", v1.ReasonPodNotReady),
	)

	It("says that nothing answers", func(ctx SpecContext) {
		c := w.declare(ctx, "discord")
		gone := w.connector(ctx, "discord", connector.Options{})
		Expect(gone.Close()).To(Succeed())
		w.start()
		Expect(w.says(ctx, c, v1.ConditionConnected, "False/DialFailed")).To(ContainSubstring("dialled again"))
	})

	It("says that something else answers", func(ctx SpecContext) {
		web := httptest.NewServer(http.NotFoundHandler())
		DeferCleanup(web.Close)
		c := w.declare(ctx, "discord")
		_, err := control.WritePod(ctx, w.namespace, "discord-0", map[string]string{"app": "discord"}, strings.TrimPrefix(web.URL, "http://"))
		Expect(err).NotTo(HaveOccurred())
		w.start()
		w.says(ctx, c, v1.ConditionConnected, "False/NotMCPL")
	})

	It("says that its token is refused, and goes on at once with a new one", func(ctx SpecContext) {
		w.connector(ctx, "discord", connector.Options{Token: "canary-right"})
		c := w.declare(ctx, "discord", w.token(ctx, "canary-wrong"))
		w.start()
		Expect(w.says(ctx, c, v1.ConditionConnected, "False/TokenRefused")).NotTo(ContainSubstring("canary"))
		Expect(k8s.Update(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "discord"},
			StringData: map[string]string{"token": "canary-right"}})).To(Succeed())
		w.says(ctx, c, v1.ConditionConnected, "True/Up")
	})

	It("says that the manager may not read its Secret, and what to do", func(ctx SpecContext) {
		w.connector(ctx, "discord", connector.Options{Token: "t"})
		c := w.declare(ctx, "discord", func(c *v1.Connector) { c.Spec.Transport.TokenSecretRef = &v1.SecretKeyReference{Name: "other"} })
		w.start()
		Expect(w.says(ctx, c, v1.ConditionConnected, "False/TokenRefused")).To(ContainSubstring("bind it a Role"))
	})

	It("says that another host holds it", func(ctx SpecContext) {
		server := w.connector(ctx, "discord", connector.Options{Fence: true})
		holder, _, err := websocket.Dial(ctx, server.URL(), &websocket.DialOptions{
			HTTPHeader: http.Header{"Mcpl-Term": {"9999999999.0"}, "Mcpl-Host": {"another-manager"}},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(holder.CloseNow)
		c := w.declare(ctx, "discord")
		w.start()
		Expect(w.says(ctx, c, v1.ConditionConnected, "False/OtherHost")).To(ContainSubstring("another-manager"))
	})

	It("may not be a url unless the manager allows it", func(ctx SpecContext) {
		c := w.declare(ctx, "discord", func(c *v1.Connector) {
			c.Spec.PodSelector, c.Spec.URL = nil, "ws://127.0.0.1:9/mcpl"
		})
		w.start()
		Expect(w.says(ctx, c, v1.ConditionConnected, "False/DialFailed")).To(ContainSubstring("--allow-connector-urls"))
	})

	It("never delays another's channels, whether it hangs, refuses or is slow", func(ctx SpecContext) {
		slow := w.connector(ctx, "slow", connector.Options{Channels: connector.Generate("slow", 40)})
		slow.Always(connector.On("channels/close", "").NeverAnswered())
		w.connector(ctx, "quick", connector.Options{Channels: connector.Generate("quick", 40)})
		w.declare(ctx, "slow")
		quick := w.declare(ctx, "quick")
		w.start()
		Eventually(ctx, func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(quick), quick)).To(Succeed())
			g.Expect(quick.Status.Channels).To(Equal(&v1.ChannelCounts{Registered: 40}))
		}).Should(Succeed())
		Eventually(ctx, func() int { return slow.Count("channels/close", "") }).Should(Equal(4), "a window of four")
	})

	It("of two with one serverID the older serves, and when it goes the other does", func(ctx SpecContext) {
		w.connector(ctx, "discord", connector.Options{Channels: connector.Generate("discord:111", 1), ReplaceConnection: true})
		first := w.declare(ctx, "discord")
		w.start()
		w.says(ctx, first, v1.ConditionReady, "True/Granted")
		second := younger(ctx, first, func() *v1.Connector {
			return w.declare(ctx, "discord-renamed", func(c *v1.Connector) {
				c.Spec.ServerID = "discord"
				c.Spec.PodSelector.MatchLabels = map[string]string{"app": "discord"}
			})
		})
		w.says(ctx, second, v1.ConditionReady, "False/DuplicateServerID")
		w.says(ctx, second, v1.ConditionStalled, "True/DuplicateServerID")
		channel := w.channel(ctx, "general", "discord", "discord:111:c1")
		w.settled(ctx, channel, v1.StateClosed)
		w.answered(ctx, w.decision(ctx, "open-it", "general", v1.DecisionOpen))

		By("a rename is a new Connector with the old serverID: what was decided stands")
		Expect(k8s.Delete(ctx, first)).To(Succeed())
		w.says(ctx, second, v1.ConditionReady, "True/Granted")
		Expect(w.settled(ctx, channel, v1.StateOpen).Decision.Revision).To(Equal(int64(1)))
	})

	It("refuses channels beyond its limit, and says so", func(ctx SpecContext) {
		w.connector(ctx, "discord", connector.Options{Channels: connector.Generate("discord:111", 5)})
		c := w.declare(ctx, "discord", func(c *v1.Connector) { c.Spec.MaxChannels = 3 })
		w.start()
		Expect(w.says(ctx, c, v1.ConditionLimitReached, "True/MaxChannels")).To(ContainSubstring("2 channels"))
	})

	It("that refuses the grant serves no channel, and says so", func(ctx SpecContext) {
		server := w.connector(ctx, "discord", connector.Options{Behavior: connector.Behavior{Policy: connector.PolicyAnswer{Kind: connector.PolicyMCPOnly}}})
		c := w.declare(ctx, "discord")
		w.start()
		w.says(ctx, c, v1.ConditionNegotiated, "False/RefusedMCPOnly")
		w.says(ctx, c, v1.ConditionReady, "False/RefusedMCPOnly")
		server.Change(func(b *connector.Behavior) { b.Policy.Kind = connector.PolicyClose })
		server.Restart()
		w.says(ctx, c, v1.ConditionNegotiated, "False/RefusedClose")
	})

	It("that was made anew gets a session of its own", func(ctx SpecContext) {
		server := w.connector(ctx, "discord", connector.Options{Channels: connector.Generate("discord:111", 1)})
		c := w.declare(ctx, "discord")
		w.start()
		w.says(ctx, c, v1.ConditionReady, "True/Granted")
		Expect(k8s.Delete(ctx, c)).To(Succeed())
		again := w.declare(ctx, "discord", func(c *v1.Connector) { c.Spec.Window = 2 })
		w.says(ctx, again, v1.ConditionReady, "True/Granted")
		Expect(again.UID).NotTo(Equal(c.UID))
		Eventually(ctx, func() int { return server.Count("initialize", "") }).Should(Equal(2))
	})
})
