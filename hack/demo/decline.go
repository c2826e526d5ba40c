package main

import (
	"context"
	"path/filepath"

	"mcpl.dev/operator/test/cluster"
	"mcpl.dev/operator/test/connector"
)

// The channels whose invitations are declined.
const (
	lobby         = "discord:222:2001"
	announcements = "discord:222:2003"
	alice         = "discord:dm:3001"
)

// decline shows three declines: one that leaves its channel closed, one that a later open replaces,
// and one whose close the connector does not answer.
func (d *demo) decline(ctx context.Context) error {
	say("Scout declines three invitations. #lobby is closed already, and its author sees an acknowledgement.")
	if err := d.apply(ctx, "decline-lobby.yaml"); err != nil {
		return err
	}
	if err := d.await(ctx, "Complete", "channeldecision/scout-declines-lobby"); err != nil {
		return err
	}

	say("#announcements is opened while the acknowledgement of its decline is still on its way.")
	if err := d.connector.Once(ctx, connector.On("channels/acknowledge", announcements).HeldAt("acknowledge").Beside()); err != nil {
		return err
	}
	if err := d.apply(ctx, "decline-announcements.yaml"); err != nil {
		return err
	}
	if err := d.connector.WaitHeld(ctx, "acknowledge", 1); err != nil {
		return err
	}
	if err := d.apply(ctx, "open-announcements.yaml"); err != nil {
		return err
	}
	if err := d.await(ctx, "Complete", "channeldecision/scout-opens-announcements"); err != nil {
		return err
	}
	if err := d.connector.Release(ctx, "acknowledge"); err != nil {
		return err
	}

	say("@alice's address changes, so nobody knows whether the channel is closed, and the connector does not answer the close.")
	if _, err := d.cluster.Kubectl(ctx, "-n", "residents", "patch", "connector", "discord", "--type=merge", "-p", `{"spec":{"requestTimeoutSeconds":3}}`); err != nil {
		return err
	}
	if err := d.connector.Once(ctx, connector.On("channels/close", alice).NeverAnswered()); err != nil {
		return err
	}
	moved := connector.NewDescriptor(alice).Labelled("@alice").At("discord", map[string]any{"channelId": "3002"})
	if _, err := d.connector.Update(ctx, connector.AsNotification, moved); err != nil {
		return err
	}
	if _, err := d.cluster.Kubectl(ctx, "-n", "residents", "wait", "--for=jsonpath={.status.transport}=Unconfirmed", "--timeout=60s",
		"channel", "-l", "mcpl.dev/discovered=true", "--field-selector", "spec.channelID="+alice); err != nil {
		return err
	}
	if err := d.apply(ctx, "decline-alice.yaml"); err != nil {
		return err
	}
	for _, name := range []string{"scout-declines-announcements", "scout-declines-alice"} {
		if err := d.await(ctx, "Complete", "channeldecision/"+name); err != nil {
			return err
		}
	}
	return d.show(ctx, "get", "channeldecisions", "scout-declines-lobby", "scout-declines-announcements", "scout-declines-alice",
		"-o", "custom-columns=NAME:.metadata.name,RESULT:.status.result,SHOWN:.status.acknowledgement.representation,MESSAGE:.status.message")
}

// apply applies one of the demo's files as the resident's own service account: it may speak for
// scout, and for nobody else.
func (d *demo) apply(ctx context.Context, file string) error {
	_, err := d.cluster.Kubectl(ctx, "-n", "residents", "--as", "system:serviceaccount:residents:scout", "create", "-f",
		filepath.Join(cluster.Root(), "hack", "demo", file))
	return err
}
