package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// An obj is free-form: a typed one could not be wrong in most of the ways that a schema is for.
type obj struct {
	*unstructured.Unstructured
}

var serial atomic.Int64

// object reads a manifest and gives it a name of its own if it has none.
func object(manifest string) obj {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		panic(fmt.Sprintf("%v in\n%s", err, manifest))
	}
	if u.GetName() == "" {
		u.SetName(fmt.Sprintf("%s-%d", strings.ToLower(u.GetKind()), serial.Add(1)))
	}
	return obj{u}
}

// edits are values to set, by path. "a.b[].c" goes through the first element of the list b.
type edits map[string]any

// absent is the value of a field that an edit removes.
var absent any = nothing{}

type nothing struct{}

// isAbsent does not compare: most values are maps, which can not be compared.
func isAbsent(value any) bool {
	_, is := value.(nothing)
	return is
}

// set pairs paths with values.
func set(pairs ...any) edits {
	e := edits{}
	for i := 0; i < len(pairs); i += 2 {
		value := pairs[i+1]
		if n, isInt := value.(int); isInt {
			value = int64(n)
		}
		e[pairs[i].(string)] = value
	}
	return e
}

// unset removes the fields.
func unset(paths ...string) edits {
	e := edits{}
	for _, path := range paths {
		e[path] = absent
	}
	return e
}

// with is a copy of the object to which the edits were made, a field before what is below it.
func (o obj) with(all ...edits) obj {
	c := o.DeepCopy()
	for _, e := range all {
		for _, path := range slices.Sorted(maps.Keys(e)) {
			value := e[path]
			if !isAbsent(value) {
				value = runtime.DeepCopyJSONValue(value)
			}
			c.Object = put(c.Object, strings.Split(path, "."), value).(map[string]any)
		}
	}
	return obj{c}
}

// put sets the value at a path within a node, making what is missing on the way.
func put(node any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	fields, _ := node.(map[string]any)
	if fields == nil {
		fields = map[string]any{}
	}
	key, isList := strings.CutSuffix(path[0], "[]")
	switch {
	case isList:
		list, _ := fields[key].([]any)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = put(list[0], path[1:], value)
		fields[key] = list
	case len(path) == 1 && isAbsent(value):
		delete(fields, key)
	default:
		fields[key] = put(fields[key], path[1:], value)
	}
	return fields
}

// letters is a string of n letters.
func letters(n int) string { return strings.Repeat("a", n) }

// many is a list of n different strings that begin with the prefix.
func many(n int, prefix string) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return list
}

// lettered is a list of n different strings of letters only.
func lettered(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = letters(i + 1)
	}
	return list
}

// at is the value at a path, nil where there is none.
func (o obj) at(path string) any {
	var node any = o.Object
	for _, step := range strings.Split(path, ".") {
		key, isList := strings.CutSuffix(step, "[]")
		fields, _ := node.(map[string]any)
		node = fields[key]
		if list, _ := node.([]any); isList {
			if len(list) == 0 {
				return nil
			}
			node = list[0]
		}
	}
	return node
}
