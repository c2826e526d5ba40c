package admission

// policyRules are those of spec.grant and spec.subscription.
func policyRules() map[string]rule {
	allowList := set("spec.subscription.mode", "AllowList")
	return map[string]rule{
		"at most 64 patterns are denied": {
			covers:  "spec.grant.deny maxItems",
			admits:  each("spec.grant.deny", lettered(64), []any{}),
			refuses: each("spec.grant.deny", lettered(65)),
		},
		"a pattern is denied once": {
			covers:  "spec.grant.deny set",
			admits:  each("spec.grant.deny", []any{"a", "b"}),
			refuses: each("spec.grant.deny", []any{"a", "a"}),
		},
		"a denied pattern is not empty": {
			covers:  "spec.grant.deny[] minLength",
			admits:  each("spec.grant.deny", []any{"a"}),
			refuses: each("spec.grant.deny", []any{""}),
		},
		"a denied pattern has at most 256 characters": {
			covers:  "spec.grant.deny[] maxLength",
			admits:  each("spec.grant.deny", []any{letters(256)}),
			refuses: each("spec.grant.deny", []any{letters(257)}),
		},
		"a denied pattern is a path of words and stars": {
			covers:  "spec.grant.deny[] pattern",
			admits:  each("spec.grant.deny[]", "channels.streaming", "*", "channels.*", "*.publish"),
			refuses: each("spec.grant.deny[]", "channels.", ".channels", "chan*", "a b", "a..b", "**"),
		},
		"a list is for the mode that reads it": {
			covers: "spec.subscription.allow is only read in mode AllowList: set spec.subscription.mode to AllowList or remove the list",
			start:  set("spec.subscription.allow", []any{"discord:111:*"}),
			admits: one(allowList, unset("spec.subscription")),
			refuses: one(
				set("spec.subscription.mode", "Manual"), set("spec.subscription.mode", "Auto"), unset("spec.subscription.mode"),
			),
		},
		"a subscription's mode is one of three": {
			covers:  "spec.subscription.mode enum",
			admits:  each("spec.subscription.mode", "Manual", "Auto", "AllowList"),
			refuses: each("spec.subscription.mode", "All", ""),
		},
		"at most 1,000 are allowed": {
			covers:  "spec.subscription.allow maxItems",
			start:   allowList,
			admits:  each("spec.subscription.allow", many(1000, "discord:"), []any{}),
			refuses: each("spec.subscription.allow", many(1001, "discord:")),
		},
		"a glob is allowed once": {
			covers:  "spec.subscription.allow set",
			start:   allowList,
			admits:  each("spec.subscription.allow", []any{"a", "b"}),
			refuses: each("spec.subscription.allow", []any{"a", "a"}),
		},
		"an allowed glob is not empty": {
			covers:  "spec.subscription.allow[] minLength",
			start:   allowList,
			admits:  each("spec.subscription.allow[]", "*"),
			refuses: each("spec.subscription.allow[]", ""),
		},
		"an allowed glob has at most 256 characters": {
			covers:  "spec.subscription.allow[] maxLength",
			start:   allowList,
			admits:  each("spec.subscription.allow[]", letters(256)),
			refuses: each("spec.subscription.allow[]", letters(257)),
		},
	}
}
