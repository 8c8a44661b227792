package stream

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// Environment of the worker process.
const (
	workerURL   = "STREAM_TEST_WORKER_URL"
	workerTopic = "STREAM_TEST_WORKER_TOPIC"
)

// worker is the main function of a worker process: it handles messages until it is
// killed, and prints a line when it starts.
func worker() int {
	conn, err := redisconn.Open(context.Background(), os.Getenv(workerURL))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	topic := os.Getenv(workerTopic)
	s, err := NewSubscriber(SubscriberConfig{Client: conn.NewBlocking(), Group: "orders", Consumer: "killed", Log: silent()})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	messages, err := s.Subscribe(context.Background(), topic)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for msg := range messages {
		go func() {
			if effect(context.Background(), conn.Cmd, topic, msg) == nil && msg.UUID != name(999) {
				msg.Ack()
			}
			if msg.UUID == name(1000) {
				fmt.Println("in the middle")
			}
		}()
	}
	return 0
}

// once is the effect of an idempotent handler: it counts a message the first time only.
var once = redis.NewScript(`
if redis.call('HSETNX', KEYS[1], ARGV[1], 1) == 1 then return redis.call('INCR', KEYS[2]) end
redis.call('INCR', KEYS[3])
return 0`)

func effect(ctx context.Context, client redis.UniversalClient, topic string, msg *Message) error {
	return once.Run(ctx, client, []string{topic + ":done", topic + ":effects", topic + ":repeats"}, msg.UUID).Err()
}

// effects returns how many messages had their effect, and how many deliveries were
// redundant.
func (r *rig) effects() (distinct, counted, repeats int64) {
	r.t.Helper()
	ctx := context.Background()
	counted, _ = r.redis.Get(ctx, r.topic+":effects").Int64()
	repeats, _ = r.redis.Get(ctx, r.topic+":repeats").Int64()
	return r.redis.HLen(ctx, r.topic+":done").Val(), counted, repeats
}

// handle handles messages with once until the channel is closed.
func (r *rig) handle(messages <-chan *Message) {
	for msg := range messages {
		go func() {
			if effect(context.Background(), r.redis, r.topic, msg) != nil {
				msg.Nack()
				return
			}
			msg.Ack()
		}()
	}
}

func TestAKilledWorkersMessagesAreTakenOver(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.publish(0, beforeKill)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), workerURL+"="+testenv.RedisURL(t), workerTopic+"="+r.topic)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "in the middle\n" {
		t.Errorf("worker: %q, %v", line, err)
	}
	_ = cmd.Process.Kill() // kill -9
	_ = cmd.Wait()
	killed := time.Now()
	left := r.stats()
	if left.Pending == 0 {
		t.Fatal("the worker left nothing; it was not killed in the middle")
	}
	// Default timeouts, and another consumer name than the killed worker.
	go r.handle(r.subscribe(r.subscriber("survivor", func(c *SubscriberConfig) { c.ClaimEvery = 0 })))
	testenv.Eventually(t, patience, func() bool { return r.tally.of(Claimed) >= int(left.Pending) }, "all is taken over")
	r.settled()
	took := time.Since(killed)
	distinct, counted, repeats := r.effects()
	if distinct != beforeKill || counted != beforeKill {
		t.Errorf("%d messages, %d effects, want %d", distinct, counted, beforeKill)
	}
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "worker killed amid messages (messages, not orders)", Accepted: beforeKill, Stored: int(distinct), Recovery: took,
	})
	t.Logf("killed with %d unread and %d pending; all done %v later; %d claimed, %d repeated",
		left.Unread, left.Pending, took, r.tally.of(Claimed), repeats)
}

func TestAWorkerThatComesBackTakesItsOwnEntriesFirst(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 600)
		// A previous process named "one" read 500 entries and crashed.
		r.read("one", 500)
		messages := r.subscribe(r.subscriber("one", func(c *SubscriberConfig) { c.ClaimIdle = time.Hour }))
		for i := range 600 {
			msg := r.next(messages)
			if msg.UUID != name(i) {
				t.Fatalf("%s came %d.", msg.UUID, i)
			}
			want, got := map[bool]int{true: 2, false: 1}[i < 500], Deliveries(msg)
			// Redis assigns entries also when its reply comes too late for the reader.
			if got < want || got > want && r.tally.of(ReadFailed) == 0 {
				t.Fatalf("%d: delivery %d, want %d", i, got, want)
			}
			msg.Ack()
		}
		r.settled()
	})
}

// read reads entries as a consumer that never acknowledges.
func (r *rig) read(consumer string, n int64) {
	r.t.Helper()
	ctx := context.Background()
	err := r.redis.XGroupCreateMkStream(ctx, r.topic, "orders", "0").Err()
	if err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") {
		r.t.Fatal(err)
	}
	got, err := r.redis.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: "orders", Consumer: consumer, Streams: []string{r.topic, ">"}, Count: n, Block: -1,
	}).Result()
	if err != nil || len(got) != 1 || int64(len(got[0].Messages)) != n {
		r.t.Fatalf("read as %s: %v", consumer, err)
	}
}

func TestEntriesOfADeadConsumerAreTakenOverAfterTheirIdleTime(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		const idle = 500 * time.Millisecond
		r.publish(0, 700)
		began := time.Now()
		r.read("dead", 700)
		messages := r.subscribe(r.subscriber("one", func(c *SubscriberConfig) { c.ClaimIdle = idle }))
		for range 700 {
			msg := r.next(messages)
			if took := time.Since(began); took < idle {
				t.Fatalf("taken over after %v", took)
			}
			if Deliveries(msg) != 2 {
				t.Fatalf("delivery %d", Deliveries(msg))
			}
			msg.Ack()
		}
		r.settled()
		if n := r.tally.of(Claimed); n != 700 {
			t.Errorf("%d claimed", n)
		}
	})
}

func TestTwoWorkersShareWhatADeadOneLeft(t *testing.T) {
	t.Parallel()
	r := setup(t)
	ids := r.publish(0, 2000)
	r.read("dead", 2000)
	long := []any{"xclaim", r.topic, "orders", "dead", 0}
	for _, id := range ids {
		long = append(long, id)
	}
	if err := r.redis.Do(t.Context(), append(long, "idle", (2*testenv.Wait).Milliseconds(), "justid")...).Err(); err != nil { // dead for longer than that
		t.Fatal(err)
	}
	for _, consumer := range []string{"one", "two"} {
		go r.handle(r.subscribe(r.subscriber(consumer, func(c *SubscriberConfig) { c.ClaimIdle = testenv.Wait })))
	}
	r.settled()
	if distinct, counted, repeats := r.effects(); distinct != 2000 || counted != 2000 || repeats != 0 {
		t.Errorf("%d messages, %d effects, %d repeats", distinct, counted, repeats)
	}
}

func TestWhatIsBeingWorkedOnIsNotTakenOver(t *testing.T) {
	t.Parallel()
	r := setup(t)
	const idle = 15 * time.Second // a worker that stalls for longer loses its entries
	short := func(c *SubscriberConfig) {
		c.ClaimIdle, c.NackDelay, c.NackDelayMax = idle, idle+idle/5, idle+idle/5
	}
	r.publish(0, 2)
	one := r.subscribe(r.subscriber("one", short))
	working, waiting := r.next(one), r.next(one)
	waiting.Nack() // its next attempt is due after more than the idle time
	two := r.subscribe(r.subscriber("two", short))
	select {
	case msg := <-one:
		if msg.UUID != waiting.UUID || Attempt(msg) != 2 || Deliveries(msg) != 1 {
			t.Errorf("%s, attempt %d, delivery %d", msg.UUID, Attempt(msg), Deliveries(msg))
		}
		msg.Ack()
	case msg := <-two:
		t.Errorf("%s was taken from a worker that is alive", msg.UUID)
	}
	working.Ack()
	r.settled()
	if n := r.tally.of(Claimed); n != 0 {
		t.Errorf("%d claimed", n)
	}
}

func TestAHandlerThatNeverReturnsLosesItsEntry(t *testing.T) {
	t.Parallel()
	r := setup(t)
	short := func(c *SubscriberConfig) {
		c.ClaimIdle, c.Drain = 3*time.Second, time.Second
	}
	r.publish(0, 1)
	one := r.subscribe(r.subscriber("one", short))
	stuck := r.next(one)
	r.none(one, 4*time.Second) // it never claims an entry from itself
	msg := r.next(r.subscribe(r.subscriber("two", short)))
	if msg.UUID != stuck.UUID || Deliveries(msg) != 2 {
		t.Errorf("%s, delivery %d", msg.UUID, Deliveries(msg))
	}
	msg.Ack()
	r.settled()
}

func TestAnEntryDeletedWhilePendingStopsNothing(t *testing.T) {
	t.Parallel()
	r := setup(t)
	ids := r.publish(0, 3)
	r.read("dead", 3)
	if err := r.redis.XDel(t.Context(), r.topic, ids[0], ids[1]).Err(); err != nil {
		t.Fatal(err)
	}
	messages := r.subscribe(r.subscriber("one", func(c *SubscriberConfig) { c.ClaimIdle = 100 * time.Millisecond }))
	msg := r.next(messages)
	if msg.UUID != name(2) {
		t.Errorf("%s", msg.UUID)
	}
	msg.Ack()
	r.settled()
}
