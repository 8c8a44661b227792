//go:build ship

package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// previousBinary returns the path of the binary of the previous release.
func previousBinary(t testing.TB) string {
	t.Helper()
	path := os.Getenv("SHIP_PREVIOUS") // set by scripts/ship
	if path == "" {
		t.Fatal("SHIP_PREVIOUS is not set: run scripts/ship")
	}
	return path
}

const placeOrder = `mutation P($in: PlaceOrderInput!) { placeOrder(input: $in) { orderTask { id } userErrors { code } } }`

// previousShop is a shop of the previous release. It runs in the development profile, where seed can
// issue path tokens without captchas and the server accepts the documents of this test.
type previousShop struct {
	*shop
	seeded struct {
		SaleID, ItemID string
		Users          []struct{ AccessToken, Path string }
	}
	next atomic.Int64 // index of the next buyer
}

// command runs the previous binary until it ends and returns its standard output.
func (o *previousShop) command(args ...string) []byte {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), previousBinary(o.t), args...)
	cmd.Env = o.environ
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		o.t.Fatalf("previous seckill %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return out
}

// mutate sends a mutation with an input to a server and returns its answer.
func mutate(address, token, document string, input map[string]any) (status int, answer []byte, err error) {
	body, err := json.Marshal(map[string]any{"query": document, "variables": map[string]any{"in": input}})
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequest(http.MethodPost, "http://"+address+"/graphql", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// buy lets the next buyer take a unit.
func (o *previousShop) buy() error {
	n := o.next.Add(1)
	buyer := o.seeded.Users[n-1]
	status, text, err := mutate(o.public, buyer.AccessToken, placeOrder, map[string]any{
		"itemId": o.seeded.ItemID, "pathToken": buyer.Path, "quantity": 1, "idempotencyKey": fmt.Sprintf("previous-release-%08d", n),
	})
	if err != nil {
		return err
	}
	var answer struct {
		Data struct {
			PlaceOrder struct{ OrderTask *struct{ ID string } }
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Data.PlaceOrder.OrderTask == nil {
		return fmt.Errorf("%d %s", status, text)
	}
	return nil
}

// load lets n buyers buy, four at a time, and calls during after a third of them.
func (o *previousShop) load(n int, during func()) {
	o.t.Helper()
	var left, done atomic.Int64
	left.Store(int64(n))
	third := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := o.buy(); err != nil {
					o.t.Errorf("a buyer of the previous release: %v", err)
				}
				if done.Add(1) == int64(n/3) {
					close(third)
				}
			}
		})
	}
	<-third
	during()
	wg.Wait()
}

// written waits until n orders are written, with nothing left in the stream.
func (o *previousShop) written(n int) {
	o.t.Helper()
	testenv.Eventually(o.t, testenv.Wait, func() bool {
		cmd := exec.CommandContext(o.t.Context(), previousBinary(o.t), "audit", "--json", "--sale", o.seeded.SaleID)
		cmd.Env = o.environ
		out, _ := cmd.Output()
		var report struct {
			OK       bool
			Postgres struct{ Orders int }
		}
		return json.Unmarshal(out, &report) == nil && report.OK && report.Postgres.Orders == n
	}, fmt.Sprintf("the audit of the previous release is clean with %d orders", n))
}

// Migrations only add to the schema, so that an installation can be upgraded without downtime
// and rolled back to the previous binary (docs/upgrade.md).
func TestThePreviousReleaseSellsOnTheNewSchema(t *testing.T) {
	t.Parallel()
	const buyers, each = 300, 120
	o := &previousShop{shop: &shop{t: t, environ: settings(t)}}
	o.environ[0] = "SECKILL_DATABASE_URL=" + testdb.EmptyPostgresURL(t)
	o.environ = append(slices.DeleteFunc(o.environ, func(s string) bool { return strings.HasPrefix(s, "SECKILL_SANDBOX=") }),
		"SECKILL_PROFILE=development", "SECKILL_LIMITS=off", "SECKILL_PATH_TTL=10m")
	o.command("migrate", "up")
	made := o.command("seed", "--users", fmt.Sprint(buyers), "--stock", fmt.Sprint(buyers), "--paths", "--json")
	if err := json.Unmarshal(made, &o.seeded); err != nil || len(o.seeded.Users) != buyers {
		t.Fatalf("%v: %s", err, made)
	}
	stop := o.serve(exec.Command(previousBinary(t), "serve"))
	o.load(each, func() { o.shop.command("migrate", "up") }) // the new binary expands the schema
	o.written(each)
	stop()

	o.serve(exec.Command(previousBinary(t), "serve")) // as after a rollback of the binary
	o.load(each, func() {})
	o.written(2 * each)
	o.shop.command("audit", "--sale", o.seeded.SaleID) // of the new release
}
