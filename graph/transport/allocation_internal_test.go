package transport

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// allocated returns the bytes that a call allocates. Allocations of other goroutines of
// the test binary count too, so tests that use it must not run in parallel.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// allocationBound is the allocation limit of the decoder for a text, in bytes: two copies
// of every string, and a small object for each value.
func allocationBound(text string) uint64 { return uint64(4*len(text) + maxJSONValues*512 + 16<<10) }

func hostile(size int) map[string]string {
	fill := func(begin, unit, end string) string {
		return begin + strings.Repeat(unit, (size-len(begin)-len(end))/len(unit)) + end
	}
	return map[string]string{
		"escaped strings in a list": fill(`{"query":"{hello}","variables":{"a":[""`, `,"\n"`, `]}}`),
		"escaped names":             fill(`{"query":"{hello}","variables":{"a":0`, `,"\n":0`, `}}`),
		"one escaped string":        fill(`{"query":"`, `\u0041`, `"}`),
		"an endless string":         fill(`{"query":"`, `\n`, ``),
		"small objects":             fill(`{"variables":{"a":[0`, `,{"":0}`, `]}}`),
		"empty lists":               fill(`{"variables":{"a":[0`, `,[]`, `]}}`),
		"nested lists":              fill(`{"variables":{"a":`, `[`, ``),
		"members that are dropped":  fill(`{"query":"{hello}"`, `,"x\t":{"":0}`, `}`),
	}
}

func TestDecodingAllocatesInProportionToTheBody(t *testing.T) {
	for name, text := range hostile(defaultMaxBody) {
		got := allocated(func() { _, _ = decodeRequest(text) })
		if limit := allocationBound(text); got > limit {
			t.Errorf("%s: %d bytes allocate %d, want at most %d", name, len(text), got, limit)
		}
	}
}

func TestASocketMessageAllocatesInProportionToItsLength(t *testing.T) {
	for name, text := range hostile(16 << 10) {
		text = fmt.Sprintf(`{"type":"ping","payload":%s}`, text)
		got := allocated(func() { _, _ = decodeMessage(text) })
		if limit := allocationBound(text); got > limit {
			t.Errorf("%s: %d bytes allocate %d, want at most %d", name, len(text), got, limit)
		}
	}
}
