package decision

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestThePackageIsPure: no rule asks what time it is, or anything else of the world outside.
func TestThePackageIsPure(t *testing.T) {
	// For each import what may be used of it; nil for all of it.
	allowed := map[string][]string{
		"fmt": {"Sprintf"}, "path": {"Match"}, "slices": nil, "strings": nil,
		"time":                                 {"Duration", "Hour", "Minute", "Second"},
		"k8s.io/apimachinery/pkg/apis/meta/v1": {"Condition", "ConditionStatus", "ConditionTrue", "ConditionFalse", "ConditionUnknown"},
		"k8s.io/apimachinery/pkg/types":        {"UID"},
		"mcpl.dev/operator/api/v1alpha1":       nil,
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		uses := map[string][]string{} // by the name of the import in this file
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			members, ok := allowed[path]
			if !ok {
				t.Errorf("%s imports %s", entry.Name(), path)
			}
			name := path[strings.LastIndex(path, "/")+1:]
			if spec.Name != nil {
				name = spec.Name.Name
			}
			if members != nil {
				uses[name] = members
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if members := uses[nameOf(x, ok)]; members != nil && !slices.Contains(members, n.Sel.Name) {
					t.Errorf("%s uses %s.%s", files.Position(n.Pos()), x.Name, n.Sel.Name)
				}
			case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt:
				t.Errorf("%s starts or waits for something", files.Position(n.Pos()))
			}
			return true
		})
	}
}

func nameOf(x *ast.Ident, ok bool) string {
	if !ok {
		return ""
	}
	return x.Name
}

// TestThePackageReachesNoClient: not through another package either.
func TestThePackageReachesNoClient(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, "mcpl.dev/operator/api/v1alpha1") {
		t.Fatalf("these are not the dependencies of this package: %s", deps)
	}
	for _, dep := range deps {
		for _, client := range []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/utils/clock", "mcpl.dev/operator/internal/ledger", "mcpl.dev/operator/internal/session", "mcpl.dev/operator/internal/mcpl"} {
			if dep == client || strings.HasPrefix(dep, client+"/") {
				t.Errorf("the rules depend on %s", dep)
			}
		}
	}
}
