package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Table is what was measured, beside what it should be.
type Table struct{ groups []*group }

// group is what was measured in one situation.
type group struct {
	title string
	rows  []row
	// notes are what a person wants to know who wonders about a figure.
	notes []string
}

type row struct{ name, measured, goal, verdict, remark string }

// Title begins a group of rows.
func (t *Table) Title(format string, args ...any) {
	t.groups = append(t.groups, &group{title: fmt.Sprintf(format, args...)})
}

// Note adds a line below the rows of the group.
func (t *Table) Note(format string, args ...any) {
	g := t.groups[len(t.groups)-1]
	g.notes = append(g.notes, fmt.Sprintf(format, args...))
}

// Show adds a figure without a goal.
func (t *Table) Show(name, measured, remark string) {
	t.add(row{name: name, measured: measured, remark: remark})
}

// AtMost adds a figure that should not exceed its goal, both in the form given.
func (t *Table) AtMost(name, form string, measured, goal float64, remark string) {
	t.judge(name, form, "≤ ", measured, goal, measured > goal, remark)
}

// Exactly adds a figure that should be its goal, both in the form given.
func (t *Table) Exactly(name, form string, measured, goal float64, remark string) {
	t.judge(name, form, "", measured, goal, measured != goal, remark)
}

func (t *Table) judge(name, form, relation string, measured, goal float64, missed bool, remark string) {
	r := row{name: name, measured: fmt.Sprintf(form, measured), goal: relation + fmt.Sprintf(form, goal), verdict: "ok", remark: remark}
	// What is shown is what is judged: half a unit of the last digit is no miss.
	if missed && r.measured != fmt.Sprintf(form, goal) {
		r.verdict = "MISSED"
	}
	t.add(r)
}

func (t *Table) add(r row) {
	g := t.groups[len(t.groups)-1]
	g.rows = append(g.rows, r)
}

// Write prints the table, and how many goals were missed.
func (t *Table) Write(w io.Writer) error {
	var widths [4]int
	missed := 0
	for _, g := range t.groups {
		for _, r := range g.rows {
			for i, cell := range []string{r.name, r.measured, r.goal, r.verdict} {
				widths[i] = max(widths[i], len([]rune(cell)))
			}
			if r.verdict == "MISSED" {
				missed++
			}
		}
	}
	var out strings.Builder
	for _, g := range t.groups {
		fmt.Fprintf(&out, "%s\n", g.title)
		for _, r := range g.rows {
			line := fmt.Sprintf("  %-*s  %*s  %-*s  %-*s  %s",
				widths[0], r.name, widths[1], r.measured, widths[2], r.goal, widths[3], r.verdict, r.remark)
			out.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		for _, note := range g.notes {
			fmt.Fprintf(&out, "  · %s\n", note)
		}
		out.WriteString("\n")
	}
	fmt.Fprintf(&out, "%d goals missed.\n", missed)
	_, err := io.WriteString(w, out.String())
	return err
}

// seconds and milliseconds are how times are shown.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

// ratio is a time beside what it is compared with.
func ratio(d, bare time.Duration) float64 { return d.Seconds() / bare.Seconds() }

// tallied lists counts by name.
func tallied(counts map[string]int) string {
	parts := make([]string, 0, len(counts))
	for name, n := range counts {
		parts = append(parts, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
