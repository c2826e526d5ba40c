package admission

// transportRules are those of spec.transport.
func transportRules() map[string]rule {
	tcp := set("spec.transport.type", "TCP")
	token := set("spec.transport.tokenSecretRef.name", "discord-mcpl")
	tls := set("spec.transport.tls.serverName", "discord-mcpl")
	rules := map[string]rule{
		"the transport is WebSocket or TCP": {
			covers:  "spec.transport.type enum",
			admits:  each("spec.transport.type", "WebSocket", "TCP"),
			refuses: each("spec.transport.type", "tcp", "UDP", ""),
		},
		"TCP is for a pod, in the open and without a token": {
			covers: "spec.transport.type TCP has neither token nor encryption: it needs spec.podSelector and spec.transport.insecure," +
				" and takes no spec.transport.tls and no spec.transport.tokenSecretRef",
			admits: one(
				tcp,
				join(tcp, set("spec.transport.port", 9000)),
				// All that TCP lacks is WebSocket's.
				token, tls, byURL("wss://discord.example"), join(tls, set("spec.transport.insecure", false)),
			),
			refuses: one(
				join(tcp, token),
				join(tcp, tls),
				join(tcp, tls, set("spec.transport.insecure", false)),
				join(tcp, set("spec.transport.insecure", false)),
				join(tcp, unset("spec.transport.insecure")),
				join(tcp, byURL("ws://discord.example")),
				join(tcp, byURL("wss://discord.example")),
			),
		},
		"a connection that became TCP takes no token": {
			covers: "spec.transport.type TCP has neither token nor encryption: it needs spec.podSelector and spec.transport.insecure," +
				" and takes no spec.transport.tls and no spec.transport.tokenSecretRef",
			step:    onUpdate,
			start:   token,
			admits:  one(edits{}, join(tcp, unset("spec.transport.tokenSecretRef"))),
			refuses: one(token),
		},
		"a port's name has at most 63 characters": {
			covers:  "spec.transport.port maxLength",
			admits:  each("spec.transport.port", letters(63), "mcpl", 8080),
			refuses: each("spec.transport.port", letters(64)),
		},
		"a port is a number or a name that there can be": {
			covers:  "spec.transport.port must be a number from 1 to 65535 or the name of a container's port",
			admits:  each("spec.transport.port", 1, 65535, "mcpl", "mcpl-2"),
			refuses: each("spec.transport.port", 0, -1, 65536, "", "MCPL", "mcpl-", "a b", "a\nb"),
		},
		"a path has at most 1,024 characters": {
			covers:  "spec.transport.path maxLength",
			admits:  each("spec.transport.path", "/"+letters(1023)),
			refuses: each("spec.transport.path", "/"+letters(1024)),
		},
		"a path begins at the root and is nothing but a path": {
			covers:  "spec.transport.path pattern",
			admits:  each("spec.transport.path", "/", "/mcpl/v1"),
			refuses: each("spec.transport.path", "", "mcpl", "/a?b", "/a#b", "/a b"),
		},
		"a token has a Secret": {
			covers:  "spec.transport.tokenSecretRef.name required",
			admits:  each("spec.transport.tokenSecretRef.name", "discord-mcpl"),
			refuses: each("spec.transport.tokenSecretRef.key", "token"),
		},
		"a token's key is not empty": {
			covers:  "spec.transport.tokenSecretRef.key minLength",
			start:   set("spec.transport.tokenSecretRef.name", "discord-mcpl"),
			admits:  each("spec.transport.tokenSecretRef.key", "a"),
			refuses: each("spec.transport.tokenSecretRef.key", ""),
		},
		"a token's key is a Secret's": {
			covers:  "spec.transport.tokenSecretRef.key maxLength",
			start:   set("spec.transport.tokenSecretRef.name", "discord-mcpl"),
			admits:  each("spec.transport.tokenSecretRef.key", letters(253)),
			refuses: each("spec.transport.tokenSecretRef.key", letters(254)),
		},
		"a server's name is not empty": {
			covers:  "spec.transport.tls.serverName minLength",
			admits:  each("spec.transport.tls.serverName", "a"),
			refuses: each("spec.transport.tls.serverName", ""),
		},
		"a server's name is a host's": {
			covers:  "spec.transport.tls.serverName maxLength",
			admits:  each("spec.transport.tls.serverName", letters(253)),
			refuses: each("spec.transport.tls.serverName", letters(254)),
		},
	}
	// The names of Secrets.
	for path, what := range map[string]string{
		"spec.transport.tokenSecretRef.name":          "the token's Secret",
		"spec.transport.tls.caSecretRef.name":         "the certificates' Secret",
		"spec.transport.tls.clientCertSecretRef.name": "the client certificate's Secret",
	} {
		start := set("spec.transport.tls.serverName", "discord-mcpl")
		rules[what+" is named"] = rule{
			covers:  path + " minLength",
			start:   start,
			admits:  each(path, "a"),
			refuses: each(path, ""),
		}
		rules[what+" has an object's name"] = rule{
			covers:  path + " maxLength",
			start:   start,
			admits:  each(path, letters(253)),
			refuses: each(path, letters(254)),
		}
	}
	for _, ref := range []string{"caSecretRef", "clientCertSecretRef"} {
		path := "spec.transport.tls." + ref
		rules[ref+" has a name"] = rule{
			covers:  path + ".name required",
			start:   set("spec.transport.tls.serverName", "discord-mcpl"),
			admits:  each(path+".name", "a"),
			refuses: each(path, map[string]any{}),
		}
	}
	return rules
}
