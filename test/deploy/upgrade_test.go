//go:build ship

package deploy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// upgrade is an installation whose processes are replaced by those of the next release
// while buyers buy.
type upgrade struct {
	*previousShop
	mu   sync.Mutex
	apis []string // public addresses; guarded by mu
	used atomic.Int64
}

// launch starts a process of a role.
func (u *upgrade) launch(binary, role string) (address string, stop func()) {
	u.t.Helper()
	p := &shop{t: u.t, environ: u.environ}
	stop = p.serve(exec.Command(binary, "serve", "--roles", role))
	return p.public, stop
}

// replace sends buyers to one address instead of another.
func (u *upgrade) replace(former, next string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.apis = append(slices.DeleteFunc(u.apis, func(a string) bool { return a == former }), next)
}

// errRetry is an error after which a buyer retries.
type errRetry struct{ text string }

func (e errRetry) Error() string { return e.text }

// codes are the userErrors of a payload.
type codes []struct{ Code string }

// retryable are codes after which a client tries again by itself.
var retryable = []string{"UNAVAILABLE", "SERVICE_UNAVAILABLE", "RATE_LIMITED", "TOO_MANY_TRIES", "DEADLINE_EXCEEDED"}

// mutate calls a mutation at any of the addresses and decodes its payload.
func (u *upgrade) mutate(token, document string, input map[string]any, payload any) error {
	u.mu.Lock()
	address := u.apis[int(u.used.Add(1))%len(u.apis)]
	u.mu.Unlock()
	status, text, err := mutate(address, token, document, input)
	if err != nil || status == http.StatusServiceUnavailable {
		return errRetry{fmt.Sprintf("%d %v", status, err)}
	}
	var answer struct {
		Data   map[string]json.RawMessage
		Errors []struct{ Extensions struct{ Code string } }
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%d %s", status, text)
	}
	for _, e := range answer.Errors {
		if slices.Contains(retryable, e.Extensions.Code) {
			return errRetry{e.Extensions.Code}
		}
		return fmt.Errorf("%s", text)
	}
	for _, field := range answer.Data {
		return json.Unmarshal(field, payload)
	}
	return fmt.Errorf("no payload in %s", text)
}

// newPath solves a proof of work and returns a path token.
func (u *upgrade) newPath(token string) (string, error) {
	var made struct {
		Challenge  *struct{ ID, Parameters string }
		UserErrors codes
	}
	err := u.mutate(token, `mutation C($in: CreateCaptchaInput!) { createCaptcha(input: $in) { challenge { id parameters } userErrors { code } } }`,
		map[string]any{"purpose": "SECKILL", "saleId": u.seeded.SaleID, "kind": "PROOF_OF_WORK"}, &made)
	if err != nil || made.Challenge == nil {
		return "", refusedWith(err, made.UserErrors)
	}
	var issued struct {
		Path       *struct{ Token string }
		UserErrors codes
	}
	err = u.mutate(token, `mutation I($in: IssueSeckillPathInput!) { issueSeckillPath(input: $in) { path { token } userErrors { code } } }`,
		map[string]any{"itemId": u.seeded.ItemID, "captcha": map[string]any{"challengeId": made.Challenge.ID, "answer": solve(u.t, made.Challenge.Parameters)}}, &issued)
	if err != nil || issued.Path == nil {
		return "", refusedWith(err, issued.UserErrors)
	}
	return issued.Path.Token, nil
}

// refusedWith returns the error of a call, or its codes: a captcha or path of the other
// release is refused, and the buyer gets a new one.
func refusedWith(err error, refused codes) error {
	if err != nil {
		return err
	}
	for _, r := range refused {
		if !slices.Contains(append(retryable, "CAPTCHA_INVALID", "PATH_INVALID", "CAPTCHA_REQUIRED"), r.Code) {
			return fmt.Errorf("refused: %v", refused)
		}
	}
	return errRetry{fmt.Sprint(refused)}
}

// purchase lets a buyer try until an order is accepted, and returns its task.
func (u *upgrade) purchase(buyer int) (task string, err error) {
	who := u.seeded.Users[buyer]
	path := who.Path
	for range 200 {
		var placed struct {
			OrderTask  *struct{ ID string }
			UserErrors codes
		}
		if path == "" {
			path, err = u.newPath(who.AccessToken)
		}
		if err == nil {
			err = u.mutate(who.AccessToken, placeOrder,
				map[string]any{"itemId": u.seeded.ItemID, "pathToken": path, "quantity": 1, "idempotencyKey": fmt.Sprintf("upgrade-%08d", buyer)}, &placed)
			if err == nil && placed.OrderTask != nil {
				return placed.OrderTask.ID, nil
			}
			if err = refusedWith(err, placed.UserErrors); len(placed.UserErrors) > 0 {
				path = ""
			}
		}
		if _, again := err.(errRetry); !again {
			return "", err
		}
		err = nil
	}
	return "", fmt.Errorf("not accepted after 200 attempts")
}

// After the migration, the processes of an installation are replaced one by one during a
// sale, in the order of docs/upgrade.md.
func TestARollingUpgradeDuringASaleLosesAndDoublesNoOrder(t *testing.T) {
	t.Parallel()
	const buyers = 400
	u := &upgrade{previousShop: &previousShop{shop: &shop{t: t, environ: settings(t)}}}
	u.environ[0] = "SECKILL_DATABASE_URL=" + testdb.EmptyPostgresURL(t)
	u.environ = append(slices.DeleteFunc(u.environ, func(s string) bool { return strings.HasPrefix(s, "SECKILL_SANDBOX=") }),
		"SECKILL_PROFILE=development", "SECKILL_LIMITS=off", "SECKILL_PATH_TTL=10m", "SECKILL_POW_MAX=10000")
	u.command("migrate", "up")
	made := u.command("seed", "--users", fmt.Sprint(buyers), "--stock", fmt.Sprint(buyers), "--paths", "--json")
	if err := json.Unmarshal(made, &u.seeded); err != nil || len(u.seeded.Users) != buyers {
		t.Fatalf("%v: %s", err, made)
	}
	former, next := previousBinary(t), binary(t)
	_, worker := u.launch(former, "worker")
	_, scheduler := u.launch(former, "scheduler")
	first, stopFirst := u.launch(former, "api")
	second, stopSecond := u.launch(former, "api")
	u.apis = []string{first, second}

	var done atomic.Int64
	tasks := make([]string, buyers)
	todo := make(chan int)
	var running sync.WaitGroup
	for range 6 {
		running.Go(func() {
			for buyer := range todo {
				task, err := u.purchase(buyer)
				if err != nil {
					t.Errorf("buyer %d: an error that is not retryable: %v", buyer, err)
				}
				tasks[buyer] = task
				done.Add(1)
			}
		})
	}
	running.Go(func() {
		defer close(todo)
		for buyer := range buyers {
			todo <- buyer
		}
	})
	reached := func(n int64) {
		testenv.Eventually(t, testenv.Wait, func() bool { return done.Load() >= n }, fmt.Sprintf("%d buyers are answered", n))
	}
	reached(buyers / 8)
	u.shop.command("migrate", "up")
	_, _ = u.launch(next, "worker")
	worker()
	reached(2 * buyers / 8)
	fresh, _ := u.launch(next, "api")
	u.replace(first, fresh)
	stopFirst()
	reached(4 * buyers / 8) // both releases answer
	_, _ = u.launch(next, "scheduler")
	scheduler()
	reached(5 * buyers / 8)
	fresh, _ = u.launch(next, "api")
	u.replace(second, fresh)
	stopSecond()
	running.Wait()

	distinct := map[string]bool{}
	for buyer, task := range tasks {
		if task == "" || distinct[task] {
			t.Errorf("buyer %d has task %q", buyer, task)
		}
		distinct[task] = true
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		var report struct {
			OK       bool
			Postgres struct{ Orders int }
			Redis    struct{ Stock int }
		}
		cmd := exec.CommandContext(t.Context(), next, "audit", "--json", "--sale", u.seeded.SaleID)
		cmd.Env = u.environ
		out, _ := cmd.Output() // exit 1 while messages are on their way
		return json.Unmarshal(out, &report) == nil && report.OK && report.Postgres.Orders == buyers && report.Redis.Stock == 0
	}, "every order is written once, and the audit is clean")
}
