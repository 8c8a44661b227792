package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// sample is one measurement: a count, its duration, and the CPU time of the server.
type sample struct {
	n    int
	took time.Duration
	cpu  time.Duration
	used usage // of all processes, where it was measured
}

func (s sample) rate() float64   { return float64(s.n) / s.took.Seconds() }
func (s sample) micros() float64 { return float64(s.cpu.Microseconds()) / float64(s.n) }

// allMicros returns the CPU time per operation of server, Redis and Postgres.
func (s sample) allMicros() float64 {
	return float64((s.used.server + s.used.redis + s.used.postgres).Microseconds()) / float64(s.n)
}

// add adds the time and the usage of a further part of the same operations.
func (s *sample) add(part sample) {
	s.took, s.cpu, s.used = s.took+part.took, s.cpu+part.cpu, s.used.plus(part.used)
}

// figure is one line of the table: the median over the rounds of the ratio between two
// samples of one round.
type figure struct {
	Name  string  `json:"name"`
	Ratio float64 `json:"ratio"` // of operations per second
	Least float64 `json:"least"` // over the rounds
	Most  float64 `json:"most"`  // over the rounds
	// CPU time of the baseline per operation, divided by ours: higher is better
	CPU     float64 `json:"cpuRatio,omitempty"`
	Wanted  string  `json:"expected"`
	ToReach string  `json:"toReach"`
	Unit    string  `json:"unit,omitempty"` // "" = a ratio
}

// compare returns the figure for samples of the same rounds.
func compare(name string, ours, floor []sample, wanted, toReach string) figure {
	var rates, cpus []float64
	for i := range min(len(ours), len(floor)) {
		rates = append(rates, ours[i].rate()/floor[i].rate())
		if ours[i].cpu > 0 && floor[i].cpu > 0 {
			cpus = append(cpus, floor[i].micros()/ours[i].micros())
		}
	}
	f := figure{Name: name, Wanted: wanted, ToReach: toReach, Ratio: median(rates), CPU: median(cpus)}
	if len(rates) > 0 {
		f.Least, f.Most = slices.Min(rates), slices.Max(rates)
	}
	return f
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// report is the result of a run.
type report struct {
	Figures []figure           `json:"figures"`
	Checks  []check            `json:"checks"`
	Rates   map[string]float64 `json:"ratesPerSecond"` // medians; not comparable across machines
	Micros  map[string]float64 `json:"serverMicros"`   // medians of CPU time per operation
	Shares  map[string]shares  `json:"sharesMicros"`   // per process, where it was measured
	Rounds  int                `json:"rounds"`
	Store   string             `json:"store"` // name and version
	Body    int                `json:"requestBodyBytes"`
}

// check is a count that must have an expected value.
type check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// note adds the rate and CPU time of a measurement.
func (r *report) note(name string, samples []sample) {
	var rates, micros []float64
	for _, s := range samples {
		rates = append(rates, s.rate())
		if s.cpu > 0 {
			micros = append(micros, s.micros())
		}
	}
	r.Rates[name], r.Micros[name] = median(rates), median(micros)
	if sh := sharesOf(samples); sh.Server > 0 {
		r.Shares[name] = sh
	}
}

// shares is the CPU time per operation of each process, microseconds: medians.
type shares struct {
	Server    float64 `json:"server"`
	Redis     float64 `json:"redis"`
	Postgres  float64 `json:"postgres"`
	Generator float64 `json:"generator"`
	Idle      float64 `json:"idle"`
	// Of Redis per operation: microseconds in scripts, their calls, and all commands,
	// those of the scripts too.
	Scripting float64 `json:"scriptMicros"`
	Scripts   float64 `json:"scripts"`
	Commands  float64 `json:"commands"`
	Objects   float64 `json:"allocations,omitempty"` // of the server, where it was measured
}

func sharesOf(samples []sample) shares {
	number := func(part func(usage) float64) float64 {
		var v []float64
		for _, s := range samples {
			v = append(v, part(s.used)/float64(s.n))
		}
		return median(v)
	}
	of := func(part func(usage) time.Duration) float64 {
		return number(func(u usage) float64 { return float64(part(u).Microseconds()) })
	}
	return shares{
		Server:    of(func(u usage) time.Duration { return u.server }),
		Redis:     of(func(u usage) time.Duration { return u.redis }),
		Postgres:  of(func(u usage) time.Duration { return u.postgres }),
		Generator: of(func(u usage) time.Duration { return u.generator }),
		Idle:      of(func(u usage) time.Duration { return u.idle }),
		Scripting: of(func(u usage) time.Duration { return u.scripting }),
		Scripts:   number(func(u usage) float64 { return u.scripts }),
		Commands:  number(func(u usage) float64 { return u.commands }),
		Objects:   number(func(u usage) float64 { return u.objects }),
	}
}

// print writes the table.
func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "\nMedians of %d rounds; each ratio within one round. CPU is processor time of the server per request, floor by ours.\n\n", r.Rounds)
	fmt.Fprintf(out, "  %-52s %8s %15s %8s %10s %9s\n", "", "ratio", "rounds", "CPU", "expected", "to reach")
	for _, f := range r.Figures {
		if f.Unit != "" {
			fmt.Fprintf(out, "  %-52s %5.1f %-2s %15s %8s %10s %9s\n", f.Name, f.Ratio, f.Unit, "", "", f.Wanted, f.ToReach)
			continue
		}
		cpu := "-"
		if f.CPU > 0 {
			cpu = fmt.Sprintf("%.2f", f.CPU)
		}
		fmt.Fprintf(out, "  %-52s %8.2f %15s %8s %10s %9s\n", f.Name, f.Ratio, fmt.Sprintf("%.2f - %.2f", f.Least, f.Most),
			cpu, f.Wanted, f.ToReach)
	}
	if len(r.Rates) == 0 {
		return
	}
	fmt.Fprintf(out, "\n  %-34s %11s %10s %8s %9s %10s %6s %10s %8s %9s %12s\n", "on this machine, now", "per second",
		"server us", "Redis", "Postgres", "generator", "idle",
		"script us", "scripts", "commands", "allocations")
	for _, name := range slices.Sorted(keysOf(r.Rates)) {
		fmt.Fprintf(out, "  %-34s %11.0f %10.1f", name, r.Rates[name], r.Micros[name])
		if s, ok := r.Shares[name]; ok {
			fmt.Fprintf(out, " %8.1f %9.1f %10.1f %6.1f %10.1f %8.2f %9.1f %12.0f", s.Redis, s.Postgres, s.Generator, s.Idle,
				s.Scripting, s.Scripts, s.Commands, s.Objects)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	for _, c := range r.Checks {
		verdict := "ok"
		if !c.OK {
			verdict = "WRONG"
		}
		fmt.Fprintf(out, "  %-5s %s: %s\n", verdict, c.Name, c.Text)
	}
	fmt.Fprintln(out)
}

func keysOf(m map[string]float64) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// passed reports whether every check passed.
func (r *report) passed() bool {
	return !slices.ContainsFunc(r.Checks, func(c check) bool { return !c.OK })
}

// save writes the report as JSON.
func (r *report) save(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// Lines of test/bench/performance.md between which the results of a run are written.
var (
	resultsBegin = []byte("<!-- results of make bench: begin -->\n")
	resultsEnd   = []byte("<!-- results of make bench: end -->\n")
)

// writeResults writes the tables of a run into a page.
func (r *report) writeResults(page string, at time.Time) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begins := bytes.Cut(text, resultsBegin)
	_, after, ends := bytes.Cut(rest, resultsEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for results", page)
	}
	return os.WriteFile(page, slices.Concat(before, resultsBegin, r.markdown(at), resultsEnd, after), 0o644)
}

// markdown returns the tables of a run.
func (r *report) markdown(at time.Time) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Medians of %d rounds, %s, %s.\n\n| | ratio (rounds) | CPU | target |\n|---|---|---|---|\n", r.Rounds,
		at.UTC().Format(time.DateOnly), r.Store)
	for _, f := range r.Figures {
		value, cpu := fmt.Sprintf("%.2f (%.2f–%.2f)", f.Ratio, f.Least, f.Most), ""
		if f.Unit != "" {
			value = fmt.Sprintf("%.1f %s", f.Ratio, f.Unit)
		}
		if f.CPU > 0 {
			cpu = fmt.Sprintf("%.2f", f.CPU)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Name, value, cpu, f.ToReach)
	}
	b.WriteString("\n| µs of CPU time | server | Redis | in scripts | commands | Postgres | generator | allocations | per second |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(keysOf(r.Rates)) {
		s := r.Shares[name]
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", name,
			micros(r.Micros[name]), micros(s.Redis), micros(s.Scripting), micros(s.Commands), micros(s.Postgres),
			micros(s.Generator), micros(s.Objects), thousands(int(r.Rates[name])))
	}
	b.WriteString("\n")
	for _, c := range r.Checks {
		verdict := "holds"
		if !c.OK {
			verdict = "does **not** hold"
		}
		fmt.Fprintf(&b, "- %s: %s, %s.\n", c.Name, verdict, c.Text)
	}
	return b.Bytes()
}

// micros leaves out what was not measured.
func micros(v float64) string {
	if v < 0.5 {
		return ""
	}
	return fmt.Sprintf("%.0f", v)
}
