package notifier

import (
	"encoding/json"
	"fmt"
	"testing"
)

// BenchmarkEncode measures the encoding of the entries of one order: the end of its
// task and the notice to its buyer.
func BenchmarkEncode(b *testing.B) {
	const batch = 100
	var entries []StatusEntry
	for i := range batch {
		id := fmt.Sprintf("01937b3c-0001-7abc-9def-%012d", i)
		entries = append(entries,
			StatusEntry{Key: "task:" + id, Revision: 2, Terminal: true, Value: json.RawMessage(`{"id":"` + id + `","user":"` + id +
				`","sale":"` + id + `","item":"` + id + `","quantity":1,"status":"SUCCEEDED","revision":2,"createdAtMs":1795204800123,"updatedAtMs":1795204800156}`)},
			StatusEntry{Key: "buyer:" + id, Revision: 1795204800156000})
	}
	b.ReportAllocs()
	for b.Loop() {
		encode(entries)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/order")
}
