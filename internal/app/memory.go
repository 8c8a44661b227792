package app

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// memoryEvery is the interval at which an idle process returns unused memory to the
	// operating system. With GOGC=400 the collector itself would wait for 120 MB of garbage.
	memoryEvery = 10 * time.Second
	// idleAllocation is the allocation between two steps, in bytes, above which a process
	// is not idle. The embedded Redis of an idle demo allocates 20 MB.
	idleAllocation = 48 << 20
	// minUnused is the unused memory worth a collection, in bytes.
	minUnused = 8 << 20
)

// memory returns unused memory while the process is idle.
type memory struct{ allocated uint64 }

// step is a periodic.Step.
func (m *memory) step(context.Context) (map[string]int, error) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	allocated, live, objects, free := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64(), samples[3].Value.Uint64()
	idle := allocated-m.allocated < idleAllocation
	m.allocated = allocated
	if unused := objects - min(objects, live) + free; idle && unused > max(minUnused, live/4) {
		debug.FreeOSMemory()
	}
	return nil, nil
}
