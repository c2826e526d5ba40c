package connector

import (
	"slices"
	"testing"
)

func TestOpenAndClose(t *testing.T) {
	c := start(t, Options{Channels: Generate("demo", 3)})
	h := connect(t, c)
	answer := into[struct{ Channel Descriptor }](t, h.open("demo:c2"))
	if answer.Channel.ID != "demo:c2" || answer.Channel.Address["channelId"] != "c2" {
		t.Errorf("opened %+v", answer.Channel)
	}
	if got := c.OpenChannels(); !slices.Equal(got, []string{"demo:c2"}) {
		t.Errorf("open: %q", got)
	}
	for range 2 {
		if closed := into[struct{ Closed bool }](t, h.close("demo:c2")); !closed.Closed {
			t.Error("a known channel's close is not {closed:true}")
		}
	}
	if closed := into[struct{ Closed bool }](t, h.close("demo:nope")); closed.Closed {
		t.Error("an unknown channel's close is not {closed:false}")
	}
	if m := h.close(""); m.Error == nil {
		t.Error("a close without an id is no error")
	}
	if got := c.OpenChannels(); len(got) > 0 {
		t.Errorf("open: %q", got)
	}
}
