package admission

import (
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A restriction is one thing in a schema that can refuse an object.
type restriction struct {
	// path of the field, with [] for the elements of a list.
	path string
	// phrase that stands in the refusal.
	phrase string
	// values of an enum, in its order.
	values []string
}

// restrictions of a kind by their key: "<path> <keyword>", and for a CEL rule its message.
type restrictions map[string]restriction

// schemaOf is the schema of a kind as the API server has it.
func schemaOf(t *testing.T, plural string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: plural + ".mcpl.dev"}, crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// restrictionsOf lists what in the kind's schema can refuse an object.
func restrictionsOf(t *testing.T, plural string) restrictions {
	t.Helper()
	found := restrictions{}
	walk(schemaOf(t, plural), "", func(path string, s *apiextensionsv1.JSONSchemaProps) { found.add(t, path, s) })
	return found
}

// foreign are the fields whose types are Kubernetes' own, which tests what is below them itself.
var foreign = regexp.MustCompile(`(^|\.)(conditions|podSelector)$`)

// walk visits a schema and all below it.
func walk(s *apiextensionsv1.JSONSchemaProps, path string, visit func(string, *apiextensionsv1.JSONSchemaProps)) {
	visit(path, s)
	if foreign.MatchString(path) {
		return
	}
	for name, property := range s.Properties {
		walk(&property, strings.TrimPrefix(path+"."+name, "."), visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(s.Items.Schema, path+"[]", visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		walk(s.AdditionalProperties.Schema, path+".*", visit)
	}
}

func (r restrictions) add(t *testing.T, path string, s *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	keyword := func(word, phrase string, isSet bool) {
		if isSet {
			r[path+" "+word] = restriction{path: path, phrase: phrase}
		}
	}
	keyword("minimum", "should be greater than or equal to", s.Minimum != nil)
	keyword("maximum", "should be less than or equal to", s.Maximum != nil)
	keyword("minLength", "should be at least", s.MinLength != nil)
	keyword("maxLength", "Too long", s.MaxLength != nil)
	keyword("pattern", "should match", s.Pattern != "")
	keyword("minItems", "should have at least", s.MinItems != nil)
	keyword("maxItems", "Too many", s.MaxItems != nil)
	if s.XListType != nil && *s.XListType == "set" {
		r[path+" set"] = restriction{path: path + "[]", phrase: "Duplicate value"}
	}
	if len(s.Enum) > 0 {
		enum := restriction{path: path, phrase: "Unsupported value"}
		for _, value := range s.Enum {
			enum.values = append(enum.values, strings.Trim(string(value.Raw), `"`))
		}
		r[path+" enum"] = enum
	}
	for _, name := range s.Required {
		field := strings.TrimPrefix(path+"."+name, ".")
		r[field+" required"] = restriction{path: field, phrase: "Required value"}
	}
	for _, rule := range s.XValidations {
		if rule.Message == "" {
			t.Errorf("%s: the rule %q has no message", path, rule.Rule)
		}
		if other, isTaken := r[rule.Message]; isTaken {
			t.Errorf("%s: the message %q is also that of a rule of %s", path, rule.Message, other.path)
		}
		r[rule.Message] = restriction{path: path, phrase: rule.Message}
	}
}

// defaultsOf lists the paths of a kind that have a default.
func defaultsOf(t *testing.T, plural string) map[string]string {
	t.Helper()
	found := map[string]string{}
	walk(schemaOf(t, plural), "", func(path string, s *apiextensionsv1.JSONSchemaProps) {
		if s.Default != nil {
			found[path] = string(s.Default.Raw)
		}
	})
	return found
}
