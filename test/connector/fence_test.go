package connector

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/coder/websocket"
)

func asHost(host, term string) *websocket.DialOptions {
	header := http.Header{}
	header.Set("Mcpl-Host", host)
	header.Set("Mcpl-Term", term)
	return &websocket.DialOptions{HTTPHeader: header}
}

func TestFence(t *testing.T) {
	for name, test := range map[string]struct {
		host, term string
		admitted   bool
	}{
		"a higher term":                         {"b", "1700000001.0", true},
		"more transitions, as numbers":          {"b", "1700000000.10", true},
		"fewer transitions, though longer text": {"b", "1700000000.08", false},
		"an older lease with more transitions":  {"b", "1600000000.99", false},
		"the same term and identity":            {"a", "1700000000.9", true},
		"the same term and another identity":    {"b", "1700000000.9", false},
		"no term":                               {"b", "", false},
		"no identity":                           {"", "1700000002.0", false},
		"a term that is none":                   {"b", "later", false},
		"a negative term":                       {"b", "1800000000.-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, Options{Fence: true, Channels: Generate("demo", 1)})
			first, _, err := dialWith(t, c.URL(), asHost("a", "1700000000.9"))
			if err != nil {
				t.Fatal(err)
			}
			first.handshake()
			_, resp, err := dialWith(t, c.URL(), asHost(test.host, test.term))
			if test.admitted {
				if err != nil {
					t.Fatal(err)
				}
				if err := first.end(); websocket.CloseStatus(err) != 4001 {
					t.Errorf("the older host is left with %v", err)
				}
				if s := c.Status(); s.Host != test.host || s.Term != test.term {
					t.Errorf("status %+v", s)
				}
				return
			}
			if resp == nil || resp.StatusCode != http.StatusConflict {
				t.Fatalf("want 409, got %v", err)
			}
			var body struct{ Holder, Term string }
			if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
				t.Fatal(err)
			}
			if body.Holder != "a" || body.Term != "1700000000.9" {
				t.Errorf("refused with %+v", body)
			}
			if m := first.open(one); m.Error != nil {
				t.Errorf("the holder is not served any more: %v", m.Error)
			}
		})
	}
}

func TestTheFenceRemembersAHostThatLeft(t *testing.T) {
	c := start(t, Options{Fence: true})
	first, _, err := dialWith(t, c.URL(), asHost("a", "2.0"))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.ws.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitUntil(testContext(t), func() bool { return !c.Status().Connected }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := dialWith(t, c.URL(), asHost("b", "1.0")); err == nil {
		t.Error("an older host was let in")
	}
	c.Restart()
	if _, _, err := dialWith(t, c.URL(), asHost("b", "1.0")); err != nil {
		t.Errorf("a connector that was restarted remembers: %v", err)
	}
}

func TestNothingMoreOfAReplacedHostIsServed(t *testing.T) {
	ctx := testContext(t)
	c := start(t, Options{Fence: true, Channels: Generate("demo", 2)})
	first, _, err := dialWith(t, c.URL(), asHost("a", "1.0"))
	if err != nil {
		t.Fatal(err)
	}
	first.handshake()
	c.Once(On("channels/open", one).HeldAt("gate"))
	first.begin("channels/open", openParamsOf(one))
	first.begin("channels/open", openParamsOf(two))
	if _, err := c.Wait(ctx, Asked("channels/open", ""), 2); err != nil {
		t.Fatal(err)
	}
	second, _, err := dialWith(t, c.URL(), asHost("b", "2.0"))
	if err != nil {
		t.Fatal(err)
	}
	c.Release("gate")
	_ = first.end()
	second.handshake()
	second.call("channels/list", params{})
	if got := c.OpenChannels(); len(got) > 0 {
		t.Errorf("opened for the replaced host: %q", got)
	}
	if got := c.Entries(Answered("channels/open", "")); len(got) > 0 {
		t.Errorf("answered to the replaced host: %v", got)
	}
}

func TestWithoutAFenceTheSecondHost(t *testing.T) {
	t.Run("is never answered", func(t *testing.T) {
		c := start(t, Options{Channels: Generate("demo", 1)})
		first := connect(t, c)
		second := dial(t, c)
		answer := second.begin("initialize", params{})
		if _, err := c.Wait(testContext(t), Filter{Method: "initialize", Conn: 2}, 1); err != nil {
			t.Fatal(err)
		}
		if m := first.open(one); m.Error != nil {
			t.Error(m.Error)
		}
		select {
		case m := <-answer:
			t.Errorf("answered %s", m.Result)
		default:
		}
	})
	t.Run("replaces the first, where that is wanted", func(t *testing.T) {
		c := start(t, Options{ReplaceConnection: true, Channels: Generate("demo", 1)})
		first := connect(t, c)
		second := connect(t, c)
		if err := first.end(); websocket.CloseStatus(err) != 4001 {
			t.Errorf("the first is left with %v", err)
		}
		if m := second.open(one); m.Error != nil {
			t.Error(m.Error)
		}
	})
}

func TestToken(t *testing.T) {
	c := start(t, Options{Token: "secret"})
	bearer := func(token string) *websocket.DialOptions {
		return &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}}
	}
	for name, test := range map[string]struct {
		url      string
		o        *websocket.DialOptions
		admitted bool
	}{
		"none":             {c.URL(), nil, false},
		"a wrong one":      {c.URL(), bearer("other"), false},
		"in the header":    {c.URL(), bearer("secret"), true},
		"in the query":     {c.URL() + "?token=secret", nil, true},
		"wrong, in query":  {c.URL() + "?token=secre", nil, false},
		"at another place": {"ws://" + c.Addr() + "/other?token=secret", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, resp, err := dialWith(t, test.url, test.o)
			if (err == nil) != test.admitted {
				t.Errorf("admitted %t: %v", err == nil, resp)
			}
		})
	}
}
