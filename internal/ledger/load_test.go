package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/pair"
)

// recordNumber makes the record of a channel with much in it, or with little.
func recordNumber(b *book, i int) (pair.Key, *v1.ChannelRecord) {
	key := pair.Key{Namespace: b.key.Namespace, ServerID: "discord", ChannelID: fmt.Sprint("channel-", i)}
	object := &v1.ChannelRecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.RecordName()},
		ServerID:   key.ServerID, ChannelID: key.ChannelID, Revision: int64(i + 1),
		Record: v1.Record{ID: fmt.Sprint("id-", i), State: v1.StateClosed, Source: v1.SourceAgentTool, At: metav1.NewTime(start)},
	}
	if i%2 == 0 {
		object.Record = v1.Record{
			ID: fmt.Sprint("id-", i), State: v1.StateTunedOut, Source: v1.SourceAgentTool, DecidedBy: fmt.Sprint("resident-", i),
			DecisionRef: reference(fmt.Sprint("decision-", i)), At: metav1.NewTime(start),
		}
		object.TuneOut = &v1.TuneOutEpoch{
			EpochID: fmt.Sprint("epoch-", i), StartedAt: metav1.NewTime(start), Wakes: int32(i),
			Parameters: v1.TuneOutParameters{CadenceSeconds: 1800, MaxWakes: 5, DurationSeconds: ptr.To(int32(60 + i))},
		}
		object.PolicyNoticeGiven = true
		object.LabelSightings = &v1.LabelSightings{Last: fmt.Sprint("label-", i), Seen: []string{fmt.Sprint("label-", i)}}
		object.History = []v1.HistoryEntry{{Revision: object.Revision, Changed: ptr.To(true), Named: true, Record: object.Record}}
	}
	return key, object
}

// TestLoadReadsEveryPage: what one page says must not show through where the next says nothing.
func TestLoadReadsEveryPage(t *testing.T) {
	for _, limit := range []int64{0, 1, 3} {
		t.Run(fmt.Sprint("pages of ", limit), func(t *testing.T) {
			b := newBook(t)
			want := map[pair.Key]*v1.ChannelRecord{}
			for i := range 7 {
				key, object := recordNumber(b, i)
				must(t, admin.Create(t.Context(), object))
				object.ManagedFields = nil
				want[key] = object
			}
			var all v1.ChannelRecordList
			must(t, admin.List(t.Context(), &all))
			// More pages than there are records would be a loop without an end.
			endless := errors.New("this does not end")
			for range len(all.Items) + 1 {
				b.spoil("list", func(c call) error { return c.made() })
			}
			b.spoil("list", fails(endless))
			b.limit = limit
			must(t, b.Load(t.Context()))

			pages := strings.Count(b.made(), "list")
			if limit > 0 && int64(pages) != (int64(len(all.Items))+limit-1)/limit {
				t.Errorf("%d records were read in %d pages of %d", len(all.Items), pages, limit)
			}
			for key, object := range want {
				got := b.Object(key)
				if got == nil {
					t.Errorf("%s was not loaded", key)
					continue
				}
				got = got.DeepCopy()
				got.TypeMeta = object.TypeMeta
				same(t, object, got)
				same(t, recordOf(object), b.Record(key))
			}
		})
	}
}

func TestLoadFails(t *testing.T) {
	b := newBook(t).has(entry(opened))
	restarted := bookOf(t, b.key)
	restarted.spoil("list", fails(context.DeadlineExceeded))
	wantError(t, restarted.Load(t.Context()), context.DeadlineExceeded)
	restarted.remembers("none")

	must(t, restarted.Load(t.Context()))
	restarted.force("Open/AgentTool@1")
}

// TestI01: what was decided before a restart is decided after it, and the next revision follows on.
func TestI01(t *testing.T) {
	b := newBook(t)
	first := entry(lifted)
	first.PolicyNotice, first.Label = true, "general"
	b.has(first, entry(closed), note())

	restarted := bookOf(t, b.key)
	must(t, restarted.Load(t.Context()))
	restarted.force("Closed/AgentTool@2")
	same(t, b.Object(b.key).History, restarted.Object(b.key).History)
	same(t, true, restarted.Object(b.key).PolicyNoticeGiven)
	restarted.requests("list") // nothing is written at a start

	_, err := restarted.append(entry(opened))
	must(t, err)
	restarted.force("Open/AgentTool@3")
	restarted.requests("update") // over what was loaded: it need not be read again
}

// TestAChannelsNamespaceAndConnectorAreItsOwn: the same id elsewhere is another channel.
func TestAChannelsNamespaceAndConnectorAreItsOwn(t *testing.T) {
	b := newBook(t).has(entry(opened))
	otherServer, otherNamespace := b.key, b.key
	otherServer.ServerID = "slack"
	otherNamespace.Namespace = newBook(t).key.Namespace
	for _, key := range []pair.Key{otherServer, otherNamespace} {
		same(t, "none", inWords(b.Record(key)))
		_, err := b.Append(t.Context(), key, b.Record(key), entry(closed))
		must(t, err)
	}
	b.force("Open/AgentTool@1")

	restarted := bookOf(t, b.key)
	must(t, restarted.Load(t.Context()))
	restarted.force("Open/AgentTool@1")
	same(t, "Closed/AgentTool@1", inWords(restarted.Record(otherServer)))
	same(t, "Closed/AgentTool@1", inWords(restarted.Record(otherNamespace)))
}
