//go:build faults

package system_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// aofTail is how many bytes of the append-only file may be lost.
const aofTail = 4096

// crashedSale is a sale whose processes, Redis included, have ended.
type crashedSale struct {
	*site
	made    *seed.Result
	tasks   []string // of the first buyers
	written int      // how many of these have an order in Postgres
	dir     string   // files of Redis
	file    string   // name of the last append-only file
	content []byte
	others  []string // names of its other files
}

// Redis loses the end of its append-only file, from any byte on. It starts with what is whole, and each state that
// this can leave is one from which the product recovers: no unit is sold twice, all sell, no written order is lost,
// and the other accepted ones end.
func TestAllRecoversFromAnAppendOnlyFileCutAtAnyByteOfItsEnd(t *testing.T) {
	t.Parallel()
	c := crashed(t)
	states := c.cutEverywhere()
	sizes := slices.Sorted(maps.Keys(states))
	t.Logf("%d cuts of a file of %d bytes leave %d states", aofTail, len(c.content), len(sizes))
	var mu sync.Mutex
	total := testenv.FaultRow{Fault: fmt.Sprintf("Redis' append-only file cut at each of its last %d bytes, %d states", aofTail, len(sizes))}
	t.Run("states", func(t *testing.T) {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%d bytes are whole", size), func(t *testing.T) {
				t.Parallel()
				row := c.recover(t, size)
				mu.Lock()
				defer mu.Unlock()
				total.Accepted, total.Stored, total.Failed = total.Accepted+row.Accepted, total.Stored+row.Stored, total.Failed+row.Failed
				total.LostUnits, total.Recovery = total.LostUnits+row.LostUnits, max(total.Recovery, row.Recovery)
			})
		}
	})
	testenv.RecordFault(t, total)
}

const (
	tailStock, tailBuyers = 20, 34
	tailWritten           = 10
	tailAccepted          = 12 // the last of these have no order in Postgres
)

// crashed sells some units, the last ones without a worker, and kills Redis.
func crashed(t *testing.T) *crashedSale {
	s, server := onRedisWith(t)
	stopScheduler, stopWorker := s.start("scheduler"), s.start("worker")
	stopAPI := s.start("api")
	c := &crashedSale{site: s, written: tailWritten, dir: server.Dir()}
	c.made = s.seed(seed.Input{Users: tailBuyers, Stock: tailStock, PathTTL: 10 * time.Minute, PaymentWindow: 2 * time.Hour})
	for i, u := range c.made.Users[:tailAccepted] {
		if i == tailWritten {
			s.drained(c.made.SaleID, tailWritten)
			stopWorker()
			stopScheduler() // what it writes would fill the end of the file
		}
		p, err := s.place(u.AccessToken, order(c.made.ItemID, u.Path))
		if err != nil || p.OrderTask == nil {
			t.Fatalf("buyer %d: %+v %v", i, p, err)
		}
		c.tasks = append(c.tasks, p.OrderTask.ID)
	}
	stopAPI()
	server.Kill()
	files, err := filepath.Glob(filepath.Join(c.dir, "appendonlydir", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := filepath.Base(file); strings.HasSuffix(name, ".incr.aof") {
			c.file = name
		} else {
			c.others = append(c.others, name)
		}
	}
	c.content, err = os.ReadFile(filepath.Join(c.dir, "appendonlydir", c.file))
	if err != nil || len(c.content) < aofTail {
		t.Fatalf("%d bytes of %v, %v", len(c.content), files, err)
	}
	return c
}

// copyTo copies the files of Redis, of the last append-only file so many bytes, and returns its path.
func (c *crashedSale) copyTo(t testing.TB, dir string, size int) string {
	t.Helper()
	from, to := filepath.Join(c.dir, "appendonlydir"), filepath.Join(dir, "appendonlydir")
	err := os.MkdirAll(to, 0o700)
	for _, name := range c.others {
		text, failed := os.ReadFile(filepath.Join(from, name))
		if err == nil && failed == nil {
			failed = os.WriteFile(filepath.Join(to, name), text, 0o600)
		}
		if failed != nil {
			err = failed
		}
	}
	path := filepath.Join(to, c.file)
	if err == nil {
		err = os.WriteFile(path, c.content[:size], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// cutEverywhere starts Redis on each cut copy, and returns the sizes to which it cut the file further: what is
// whole. Cuts with one size leave one state.
func (c *crashedSale) cutEverywhere() map[int]int {
	t := c.t
	t.Helper()
	var mu sync.Mutex
	states := map[int]int{} // size → cuts
	next := len(c.content) - aofTail
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		dir, err := os.MkdirTemp("", "aof") //nolint:usetesting // a path of a socket is at most 108 bytes long
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) }) // in the temporary folder
		all.Go(func() {
			for {
				mu.Lock()
				size := next
				next++
				mu.Unlock()
				if size >= len(c.content) {
					return
				}
				path := c.copyTo(t, dir, size)
				if err := loads(dir); err != nil {
					t.Errorf("a file of %d bytes, cut from %d: %v", size, len(c.content), err)
					return
				}
				info, err := os.Stat(path)
				if err != nil || info.Size() > int64(size) {
					t.Errorf("a file of %d bytes: %v %v", size, info, err)
					return
				}
				mu.Lock()
				states[int(info.Size())]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return states
}

// loads starts Redis on files without a port, waits until it answers, and kills it.
func loads(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Wait)
	defer cancel()
	socket := filepath.Join(dir, "redis.sock")
	cmd := exec.CommandContext(ctx, "redis-server", "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "",
		"--appendonly", "yes", "--aof-load-truncated", "yes")
	var said strings.Builder
	cmd.Stdout = &said
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
		_ = os.Remove(socket)
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if conn, err := net.Dial("unix", socket); err == nil { //nolint:noctx // a socket of this machine
			fmt.Fprint(conn, "PING\r\n")
			line, err := bufio.NewReader(conn).ReadString('\n')
			_ = conn.Close()
			if err == nil && strings.HasPrefix(line, "+PONG") {
				return nil
			}
		}
		select {
		case <-ended:
			return fmt.Errorf("redis-server ended:\n%s", said.String())
		case <-tick.C:
		}
	}
}

// recover starts the sale on a cut file and sells what is left.
func (c *crashedSale) recover(t *testing.T, size int) testenv.FaultRow {
	dir := t.TempDir()
	c.copyTo(t, dir, size)
	server := testenv.RedisServerFrom(t, dir)
	s := newSite(t, func(cfg *config.Config) {
		cfg.RedisURL, cfg.RedisPrefix = config.Secret(server.URL()), c.cfg.RedisPrefix
		cfg.DatabaseURL = config.Secret(testdb.Copy(t, c.cfg.DatabaseURL.Reveal()))
	})
	client, keys := server.Conn().Cmd, reservation.Keys{Prefix: s.cfg.RedisPrefix}
	lost := gateOf(t, client, keys, c.made)
	began := time.Now()
	s.start("api", "worker", "scheduler")
	testenv.Eventually(t, testenv.Wait, func() bool {
		g := gateOf(t, client, keys, c.made)
		return g["gate"] == reservation.GateOpen && g["epoch"] > lost["epoch"]
	}, "the gate is open under a higher epoch")
	row := testenv.FaultRow{Recovery: time.Since(began)}
	sold := s.buy(c.made, c.made.Users[tailAccepted:])
	testenv.Eventually(t, testenv.Wait, func() bool {
		row.Failed = 0
		ended := true
		for i, task := range c.tasks { // a lost one fails some time after the first look
			switch s.taskStatus(c.made.Users[i].AccessToken, task) {
			case "SUCCEEDED":
			case "FAILED":
				if row.Failed++; i < c.written {
					t.Fatalf("task %d failed, whose order was written", i)
				}
			default:
				ended = false
			}
		}
		return ended
	}, "all tasks end")
	testenv.Eventually(t, testenv.Wait, func() bool { return s.look(c.made.SaleID).Postgres.Orders >= tailStock }, "all units are sold")
	report := s.look(c.made.SaleID)
	row.Accepted, row.Stored, row.LostUnits = len(c.tasks)+sold, report.Postgres.Orders, lostUnits(report)
	findings := slices.DeleteFunc(report.Findings, func(finding string) bool {
		return strings.HasPrefix(finding, fmt.Sprintf("%d accepted tasks were lost by Redis", row.Failed))
	})
	if len(findings) > 0 || row.Stored != tailStock || row.Accepted != row.Stored+row.Failed || report.Redis.Stock != 0 {
		t.Errorf("%+v, findings %q, report %+v", row, findings, report)
	}
	return row
}
